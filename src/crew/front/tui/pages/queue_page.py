"""The merge queue: what is tested with what, what landed, and what was sent back and why."""

import asyncio
import time
from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from crew.front.tui.board.queue_lines import QueueLine, queue_lines
from crew.front.tui.board.task_columns import columns_of
from crew.front.tui.live.past_returns import MOST, Return, read_returns, returns
from crew.front.tui.live.picture import News
from crew.front.tui.pages.page import Page
from crew.front.tui.widgets.line_list import LineList, ShownLine
from crew.front.tui.widgets.sheet import Sheet, wrapped

AGE_EVERY_S = 1.0


class QueuePage(Page):
    """The queues of all targets; the sheet below has the notes of the chosen task."""

    title: ClassVar[str] = "Queue"
    empty: ClassVar[str] = "nothing waits for its merge, and nothing was sent back"
    kinds: ClassVar[tuple[str, ...]] = ("line", "task", "run")
    DEFAULT_CSS = "QueuePage { height: 3fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+d", "turn(1)", "scroll the reasons down", show=False),
        Binding("ctrl+u", "turn(-1)", "scroll the reasons up", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._sheet = Sheet(height="2fr")
        self._returned: tuple[Return, ...] = ()
        self._told = ""

    def below(self) -> Iterable[Widget]:
        return (self._sheet,)

    def on_mount(self) -> None:
        self.set_interval(AGE_EVERY_S, self._grow_older)

    def take(self, news: News) -> None:
        if news.fresh:
            self.run_worker(self._read_past(), group="past", exclusive=True)
        elif fresh := returns(news.facts):
            self._returned = (*self._returned, *fresh)[-MOST:]
        super().take(news)

    def concerns(self, news: News) -> bool:
        return super().concerns(news) or not news.facts  # a slot has begun or ended a test

    async def _read_past(self) -> None:
        found = await asyncio.to_thread(read_returns, self.view.root)
        known = {one.number for one in found}
        later = (one for one in self._returned if one.number not in known)
        self._returned = (*found, *later)[-MOST:]
        self._is_stale = True
        self.catch_up()

    def _grow_older(self) -> None:
        if self.is_in_sight and self.rows:
            self.list_again()

    def list_again(self) -> None:
        rows = queue_lines(self.picture, self._returned, now=time.time())
        if rows and rows == list(self.rows):
            return
        if rows:
            self.show(rows, _line_of, key_of=lambda row: row.key)
        else:
            self.show(self.nothing())
        self._tell()

    def badge(self) -> str:
        return str(columns_of(self.picture).queued or "")

    def chosen_task(self) -> str:
        row = self.cursor_row
        return row.task if isinstance(row, QueueLine) else ""

    def on_line_list_moved(self, message: LineList.Moved) -> None:
        if message.lines is self:
            self._tell()

    def action_turn(self, by: int) -> None:
        self._sheet.turn(by)

    def _tell(self) -> None:
        row = self.cursor_row
        notes = row.notes if isinstance(row, QueueLine) else ""
        self._sheet.display = bool(notes)
        is_new, self._told = self._told != notes, notes
        self._sheet.tell(lambda width: wrapped(notes, width) if notes else [], is_new=is_new)


def _line_of(row: QueueLine, _width: int) -> ShownLine:
    return row.line
