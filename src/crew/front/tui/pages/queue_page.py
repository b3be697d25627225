"""The merge queue: what is tested with what, what landed, and what was sent back and why."""

import asyncio
import time
from typing import ClassVar

from crew.front.tui.board.queue_lines import QueueLine, queue_lines
from crew.front.tui.board.task_columns import columns_of
from crew.front.tui.live.past_returns import MOST, Return, read_returns, returns
from crew.front.tui.live.picture import News
from crew.front.tui.pages.sheet_page import SheetPage
from crew.front.tui.widgets.line_list import ShownLine
from crew.front.tui.widgets.sheet import wrapped

AGE_EVERY_S = 1.0


class QueuePage(SheetPage):
    """The queues of all targets; the sheet below has the notes of the chosen task."""

    title: ClassVar[str] = "Queue"
    empty: ClassVar[str] = "nothing waits for its merge, and nothing was sent back"
    kinds: ClassVar[tuple[str, ...]] = ("line", "task", "run")
    sheet_height: ClassVar[str] = "2fr"
    DEFAULT_CSS = "QueuePage { height: 3fr; }"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._returned: tuple[Return, ...] = ()

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
        self.tell()

    def badge(self) -> str:
        return str(columns_of(self.picture).queued or "")

    def chosen_task(self) -> str:
        row = self.cursor_row
        return row.task if isinstance(row, QueueLine) else ""

    def tell(self) -> None:
        row = self.cursor_row
        notes = row.notes if isinstance(row, QueueLine) else ""
        self.sheet.display = bool(notes)
        is_new = self.is_another(notes)
        self.sheet.tell(lambda width: wrapped(notes, width) if notes else [], is_new=is_new)


def _line_of(row: QueueLine, _width: int) -> ShownLine:
    return row.line
