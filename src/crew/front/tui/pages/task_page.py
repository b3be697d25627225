"""The board: all tasks by state, by wave or by quest."""

import time
from collections.abc import Iterable
from typing import ClassVar

from textual.timer import Timer
from textual.widget import Widget

from crew.front.tui.board.board_order import BoardLine, board_lines
from crew.front.tui.board.task_cells import BoardWidths, board_line, board_widths
from crew.front.tui.live.picture import News
from crew.front.tui.pages.agent_page import AgentPage
from crew.front.tui.pages.page import Page
from crew.front.tui.widgets.line_list import ShownLine, text_line

AGE_EVERY_S = 5.0
REST = 4
"""Arranging many tasks again takes at most one part in this many of the time."""


class TaskPage(Page):
    """The tasks, in the order and grouping that the person chose."""

    title: ClassVar[str] = "Tasks"
    empty: ClassVar[str] = "no tasks here: n makes one, A shows merged and closed ones too"
    kinds: ClassVar[tuple[str, ...]] = ("task", "quest", "walk")

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._widths = BoardWidths()
        self._took_s = 0.0
        self._arranged_at = 0.0
        self._due: Timer | None = None

    def below(self) -> Iterable[Widget]:
        return (AgentPage(id="crew"),)

    def on_mount(self) -> None:
        self.set_interval(AGE_EVERY_S, self._grow_older)

    def take(self, news: News) -> None:
        super().take(news)
        if not self.concerns(news):
            self.freshen()

    def concerns(self, news: News) -> bool:
        return news.tasks_changed or super().concerns(news)

    def catch_up(self) -> None:
        """With very many tasks the arrangement rests for a moment after each time."""
        wait_s = self._arranged_at + REST * self._took_s - time.monotonic()
        if wait_s <= 0:
            super().catch_up()
            return
        self.freshen()
        if self._due is None:
            self._due = self.set_timer(wait_s, self._arrange_late)

    def _arrange_late(self) -> None:
        self._due = None
        super().catch_up()

    def list_again(self) -> None:
        """Choose, sort and group the tasks again."""
        started = time.monotonic()
        rows = board_lines(self.picture, self.view.choices)
        if rows:
            self._widths = board_widths(self.picture, rows, now=time.time())
            self.show(rows, self._line_of, key_of=lambda line: line.task)
        else:
            self.show(self.nothing())
        self._arranged_at = time.monotonic()
        self._took_s = self._arranged_at - started

    def _grow_older(self) -> None:
        if self.is_in_sight:
            self.freshen()

    def nothing(self) -> list[ShownLine]:
        if self.app.choices.filter:  # type: ignore[attr-defined]
            return [text_line("no task matches the filter: escape clears it", "muted")]
        return super().nothing()

    def _line_of(self, line: BoardLine, width: int) -> ShownLine:
        return board_line(self.picture, line, width, now=time.time(), widths=self._widths)

    def chosen_task(self) -> str:
        row = self.cursor_row
        return row.task if isinstance(row, BoardLine) else ""
