"""Follows the log of a task from its end, a bounded part at a time, and reads earlier parts."""

import os
from pathlib import Path

from crew.agents.log_reader import LogReader
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.log_entry import LogEntry
from crew.domain.kernel.text import LineSplitter
from crew.runner.views.log_end import start_of_last
from crew.runner.views.read_log import LONGEST_LINE, entries_of_lines, lines_of

LINES = 4_000
"""How many lines of the log are read from its end; many of them are no entry."""

MOST_BYTES = 4 * 1_048_576
"""How far from the end reading begins at most."""

PART = 1_048_576
"""How many bytes one look reads."""

_LEFT_OUT = "… a part of a very long line is left out …"

Place = tuple[int, int]
"""A file by its device and number: another one means that the log was replaced."""


@frozen
class LogNews:
    """New entries; `is_new_log` if the earlier ones belong to another log.

    `unfinished` is a message that the next news may continue; `has_more` means that the end of the
    log was not reached.
    """

    entries: tuple[LogEntry, ...] = ()
    unfinished: LogEntry | None = None
    is_new_log: bool = False
    has_more: bool = False


class LogTail:
    """One log that is looked at again and again; belongs to one thread at a time."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._forget()

    def _forget(self) -> None:
        self._place: Place | None = None
        self._at = self._first = 0
        self._skips_line = self._is_inside_line = False
        self._splitter, self._reader = LineSplitter(LONGEST_LINE), LogReader()

    @property
    def has_earlier(self) -> bool:
        """Whether the log has lines before those that were read."""
        return self._place is not None and self._first > 0

    def has_changed(self) -> bool:
        """Whether a look would find something; costs one call of the system."""
        return self.unread() != 0

    def unread(self) -> int:
        """How many bytes a look would read, as far as is known; -1 for another log."""
        found = _stat(self._log)
        if found is None:
            return 0 if self._place is None else -1
        is_same = (found.st_dev, found.st_ino) == self._place and found.st_size >= self._at
        return found.st_size - self._at if is_same else -1

    def look(self) -> LogNews:
        """Read what was written since the last look, at most a part."""
        found = _stat(self._log)
        place = (found.st_dev, found.st_ino) if found else None
        size = found.st_size if found else 0
        is_new = self._place is not None and (place != self._place or size < self._at)
        if is_new:
            self._forget()
        if place is None:
            return LogNews(is_new_log=is_new)
        if self._place is None:
            self._place = place
            self._begin(size)
        entries = tuple(self._read(min(size, self._at + PART)))
        return LogNews(
            entries=entries,
            unfinished=self._reader.unfinished,
            is_new_log=is_new,
            has_more=self._at < size,
        )

    def _begin(self, size: int) -> None:
        start = start_of_last(self._log, LINES, end=size) if size else 0
        self._at = self._first = max(start, size - MOST_BYTES)
        self._skips_line = not _starts_line(self._log, self._at)

    def _read(self, end: int) -> "list[LogEntry]":
        with self._log.open("rb") as file:
            file.seek(self._at)
            part = file.read(max(0, end - self._at))
        self._at += len(part)
        if self._skips_line and part:
            _, newline, part = part.partition(b"\n")
            self._skips_line = not newline
            self._first = self._at - len(part)
        lines = self._splitter.feed(part) if part else []
        return [entry for line in lines for entry in self._reader.read(line)]

    def earlier(self) -> tuple[LogEntry, ...]:
        """The entries of the part before those that were read."""
        if not self.has_earlier:
            return ()
        end = self._first
        start = max(start_of_last(self._log, LINES, end=end), end - MOST_BYTES)
        with self._log.open("rb") as file:
            file.seek(start)
            part = file.read(end - start)
        if not _starts_line(self._log, start):
            _, _, rest = part.partition(b"\n")
            if not rest:  # one line is longer than what is read at once
                return self._pass_over(start)
            start, part = end - len(rest), rest
        self._first, self._is_inside_line = start, False
        return tuple(entries_of_lines(lines_of([part])))

    def _pass_over(self, start: int) -> tuple[LogEntry, ...]:
        """Leave out a part that is the middle of a line, and say so once for each such line."""
        is_told, self._is_inside_line = self._is_inside_line, True
        self._first = start
        return () if is_told else (LogEntry(kind="text", text=_LEFT_OUT),)


def _stat(log: Path) -> os.stat_result | None:
    try:
        return log.stat()
    except OSError:
        return None


def _starts_line(log: Path, at: int) -> bool:
    if at == 0:
        return True
    with log.open("rb") as file:
        file.seek(at - 1)
        return file.read(1) == b"\n"
