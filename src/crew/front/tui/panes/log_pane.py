"""The live log of a task: what its agent said and did, followed from the end, with a search."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar

from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.timer import Timer

from crew.domain.kernel.log_entry import LogEntry
from crew.front.tui.panes.log_lines import LogRow, found_in, log_rows, marked_line
from crew.front.tui.panes.pane import Pane
from crew.front.tui.widgets.line_list import ShownLine
from crew.front.tui.widgets.safe_text import Span, safe
from crew.runner.by_hand.log_tail import LogNews, LogTail
from crew.workplace import Workplace

LOOK_EVERY_S = 0.04
AT_ONCE = 32_768
"""The bytes that are read at once; for more, a thread is worth its delay."""

VISIBLE_S = 0.3
"""A pane that was not ticked for this long is not visible."""

MOST_ENTRIES = 20_000
"""More than these are not kept: a log that is followed is then read from its end again."""

MOST_EARLIER = 100_000
"""Scrolling up reads no more than these; `crew logs` prints all of a log."""


class LogPane(Pane):
    """Follows the log; scrolling up pauses, G follows again."""

    title: ClassVar[str] = "Log"
    keys: ClassVar[str] = "f follow  G end  / search  n N"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "follow", "follow or pause", show=False),
        Binding("slash", "search", "search", show=False),
        Binding("n", "match(1)", "next match", show=False),
        Binding("N", "match(-1)", "previous match", show=False),
        Binding("escape", "end_search", "end the search", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._tail = LogTail(Path())
        self._entries: list[LogEntry] = []
        self._unfinished: LogEntry | None = None
        self._log_rows: list[LogRow] = []
        self._firm = 0  # rows of entries that no news can change any more
        self._begun = 0  # how many entries the first look at the end has found
        self._width = 0
        self._timer: Timer | None = None
        self._ticked_at = 0.0
        self._looks: Timer | None = None
        self._is_reading = self._has_looked = False
        self._follows = True
        self._word, self._match = "", -1

    def on_mount(self) -> None:
        self._timer = self.set_interval(LOOK_EVERY_S, self._look, pause=True)

    # Reading

    def fill(self) -> None:
        self._tail = LogTail(Workplace(root=self.view.root).task_log(self.task_id))
        self._match = -1
        self._follows = True
        self._empty()
        self.retitle()
        self.tick()
        self._look()
        if self._timer is not None:
            self._timer.resume()

    def leave(self) -> None:
        if self._timer is not None:
            self._timer.pause()

    def _empty(self) -> None:
        self._entries, self._unfinished, self._log_rows, self._firm = [], None, [], 0
        self._begun, self._has_looked = 0, False
        self.show([])

    def tick(self) -> None:
        self._ticked_at = time.monotonic()
        if self._looks is not None:
            self._looks.resume()
        is_at_top = not self._follows and self.scroll_offset.y == 0
        if is_at_top and self._tail.has_earlier and len(self._entries) < MOST_EARLIER:
            self._start(self._read_earlier)

    @property
    def _is_full(self) -> bool:
        return len(self._entries) - self._begun >= MOST_ENTRIES

    def _look(self) -> None:
        """Read what was written since; a log that did not change costs one call of the system."""
        is_visible = time.monotonic() < self._ticked_at + VISIBLE_S
        if not is_visible and self._looks is not None:
            self._looks.pause()  # the next tick resumes it
        if not is_visible or not self.task_id or self._is_reading:
            return
        unread = self._tail.unread()
        if self._has_looked and not unread:
            return
        if self._is_full:
            if self._follows:
                self.fill()
        elif self._has_looked and 0 < unread <= AT_ONCE:
            self._take_in(_look_at(self._tail))
        else:
            self._start(self._read_on)

    def _start(self, read: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if not self._is_reading:
            self._is_reading = True
            self.run_worker(read(), exit_on_error=False)

    async def _read_on(self) -> None:
        tail = self._tail
        try:
            news = await asyncio.to_thread(_look_at, tail)
        finally:
            self._is_reading = False
        if tail is not self._tail:
            self._look()
            return
        self._take_in(news)
        if news.has_more:
            self._look()

    def _take_in(self, news: LogNews) -> None:
        if news.is_new_log:
            self._empty()
        self._has_looked = True
        self._check_width()
        self._entries += news.entries
        self._begun = self._begun or (0 if news.has_more else len(self._entries))
        self._unfinished = news.unfinished
        del self._log_rows[self._firm :]
        self._log_rows += log_rows(news.entries, self._width)
        self._firm = len(self._log_rows)
        self._show_rows()

    async def _read_earlier(self) -> None:
        tail = self._tail
        try:
            found = await asyncio.to_thread(tail.earlier)
        except OSError:
            found = ()
        finally:
            self._is_reading = False
        if tail is not self._tail:
            return
        self._check_width()
        self._entries[:0] = found
        self._begun += len(found)
        rows = list(log_rows(found, self._width))
        self._log_rows[:0] = rows
        self._firm += len(rows)
        if self._match >= 0:
            self._match += len(rows)
        self._show_rows()
        self.call_after_refresh(self.scroll_to, y=self.scroll_offset.y + len(rows), animate=False)

    # Lines

    def _check_width(self) -> None:
        if self._width == self.line_width:
            return
        self._width = self.line_width
        self._log_rows = list(log_rows(self._entries, self._width))
        self._firm = len(self._log_rows)
        self._match = -1

    def _show_rows(self) -> None:
        del self._log_rows[self._firm :]
        if self._unfinished is not None:
            self._log_rows += log_rows((self._unfinished,), self._width)
        if not self._log_rows:
            self.say(self._why_empty())
            return
        self.show(self._log_rows, self._line_of)
        if self._follows:
            self.scroll_end(animate=False)

    def _why_empty(self) -> str:
        state = self.picture.status_of(self.task_id) if self.task_id in self.picture.items else ""
        if state == "in_progress":
            return "nothing is printed yet: the words of the agent appear here"
        return "no log yet: s starts the task, and the words of its agent appear here"

    def _line_of(self, row: LogRow, _width: int) -> ShownLine:
        is_current = 0 <= self._match < len(self._log_rows) and row is self._log_rows[self._match]
        return marked_line(row, self._word, is_current=is_current)

    def on_resize(self) -> None:
        if self.task_id and self._log_rows and self._width != self.line_width:
            self._check_width()
            self._show_rows()

    # Follow and pause

    def remarks(self) -> list[Span]:
        spans: list[Span] = [("  following", "good") if self._follows else ("  paused", "warn")]
        if self._word:
            found = found_in(self._log_rows, self._word)
            at = found.index(self._match) + 1 if self._match in found else 0
            spans.append((f"  /{safe(self._word)} {at} of {len(found)}", "key"))
        return spans

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if new_value < old_value and new_value < self.max_scroll_y:
            self._set_follow(follows=False)

    def _set_follow(self, *, follows: bool) -> None:
        if self._follows != follows:
            self._follows = follows
            self.retitle()
        if follows:
            self.scroll_end(animate=False)

    def action_follow(self) -> None:
        self._set_follow(follows=not self._follows)

    def action_jump(self, to: int) -> None:
        if to != 0:
            self._set_follow(follows=True)
            return
        self._set_follow(follows=False)
        super().action_jump(to)

    # Search

    def action_search(self) -> None:
        self.run_worker(self._search(), exit_on_error=False)

    async def _search(self) -> None:
        word = await self.view.write("Search in the log", text=self._word)
        if word is None:
            return
        self._word, self._match = word.strip(), -1
        found = found_in(self._log_rows, self._word)
        if found:
            top = self.scroll_offset.y
            self._go_to(next((row for row in found if row >= top), found[-1]))
        elif self._word:
            self.view.notify("not found in the part that was read; scroll up for more")
        self.redraw()
        self.retitle()

    def action_match(self, by: int) -> None:
        """Go to another match; without a search the key keeps its usual meaning."""
        if not self._word:
            raise SkipAction
        found = found_in(self._log_rows, self._word)
        if not found:
            return
        after = [row for row in found if (row > self._match if by > 0 else row < self._match)]
        wrap_to = found[0] if by > 0 else found[-1]
        self._go_to((after[0] if by > 0 else after[-1]) if after else wrap_to)

    def _go_to(self, row: int) -> None:
        self._match = row
        self._set_follow(follows=False)
        self.scroll_to(y=max(0, row - self.size.height // 2), animate=False)
        self.redraw()
        self.retitle()

    def action_end_search(self) -> None:
        """Forget the search; without one the key keeps its usual meaning."""
        if not self._word:
            raise SkipAction
        self._word, self._match = "", -1
        self.redraw()
        self.retitle()


def _look_at(tail: LogTail) -> LogNews:
    try:
        return tail.look()
    except OSError:  # it vanished meanwhile
        return LogNews()
