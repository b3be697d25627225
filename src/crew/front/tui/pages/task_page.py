"""The board: all tasks by state, by wave or by quest."""

import time
from typing import ClassVar

from crew.front.tui.board.board_order import BoardLine, board_lines
from crew.front.tui.board.task_cells import board_line
from crew.front.tui.live.picture import News
from crew.front.tui.pages.page import Page
from crew.front.tui.widgets.line_list import ShownLine, text_line


class TaskPage(Page):
    """The tasks, in the order and grouping that the person chose."""

    title: ClassVar[str] = "Tasks"
    empty: ClassVar[str] = "no tasks here: n makes one, A shows merged and closed ones too"

    def take(self, news: News) -> None:
        if news.tasks_changed or news.about("task"):
            self.list_again()
        elif news.facts or news.picture.runner != self.picture.runner:
            self.redraw()

    def list_again(self) -> None:
        """Choose, sort and group the tasks again."""
        rows = board_lines(self.picture, self.app.choices)  # type: ignore[attr-defined]
        if not rows:
            self.show(self.nothing())
            return
        self.show(rows, self._line_of, key_of=lambda line: line.task)

    def nothing(self) -> list[ShownLine]:
        if self.app.choices.filter:  # type: ignore[attr-defined]
            return [text_line("no task matches the filter: escape clears it", "muted")]
        return super().nothing()

    def _line_of(self, line: BoardLine, width: int) -> ShownLine:
        return board_line(self.picture, line, width, now=time.time())

    def chosen_task(self) -> str:
        row = self.cursor_row
        return row.task if isinstance(row, BoardLine) else ""
