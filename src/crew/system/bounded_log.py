"""Log files with a size limit: beyond it the middle is removed, and a line in its place says so."""

import logging
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from crew.domain.kernel.errors import CrewError
from crew.system.crash_points import effect
from crew.system.private_files import make_private_folder, open_private

MIB = 2**20
COPY_BYTES = MIB
_limit = 64 * MIB


def limit_logs(max_bytes: int) -> None:
    """Set the limit of each log that this process writes."""
    global _limit  # noqa: PLW0603 - one setting for all logs of a runner
    _limit = max_bytes


class Log:
    """A file to which raw output is appended. A full disk is an error, never a silent gap."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        try:
            self._file = _open_log(self._path)
            self._size = os.fstat(self._file).st_size
        except OSError as error:
            raise self._failure(error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)

    def append(self, chunk: bytes) -> None:
        try:
            _append(self._file, chunk)
            self._size += len(chunk)
            if self._size > _limit:
                self._size = shorten(self._path, self._file, _limit)
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> CrewError:
        return CrewError(
            f"the log {self._path} cannot be written: {error.strerror}",
            hint="make room on the disk or fix the folder's permissions, then run it again",
        )


class LogHandler(logging.Handler):
    """Writes crew's own log. A disk that is full loses lines, and never prints a traceback."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._lost = 0
        with suppress(CrewError), Log(path):  # it exists from the start
            pass

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:  # noqa: BLE001 - a line that cannot be formatted must not end its caller
            text = f"{record.levelname} {record.name} {record.msg!r} cannot be formatted"
        note = f"{self._lost} lines could not be written here\n" if self._lost else ""
        try:
            with Log(self._path) as log:
                log.append(f"{note}{text}\n".encode(errors="backslashreplace"))
            self._lost = 0
        except CrewError:
            self._lost += 1


@effect("agents.open_log")
def _open_log(path: Path) -> int:
    make_private_folder(path.parent)
    return open_private(path, os.O_WRONLY | os.O_APPEND)


@effect("agents.append_log")
def _append(file: int, chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        left = left[os.write(file, left) :]


@effect("agents.shorten_log")
def shorten(path: Path, opened: int, limit: int) -> int:
    """Remove the middle in place, so that other processes can append; the size after it.

    An eighth of the limit is kept from the beginning, and three eighths from the end. A kill in
    between leaves some lines twice.
    """
    # A second descriptor, since what is opened to append can write only at the end.
    file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size
        if not os.path.samestat(os.fstat(file), os.fstat(opened)) or size <= limit:
            return os.fstat(opened).st_size
        head = _after_newline(file, limit // 8)
        tail = _after_newline(file, size - limit * 3 // 8)
        at = head + os.pwrite(file, _notice(limit), head)
        at = _copy_down(file, tail, size, to=at)
        os.ftruncate(file, at)
        return at
    finally:
        os.close(file)


def _notice(limit: int) -> bytes:
    text = f"=== crew removed lines here: [log] max_mb = {limit // MIB} limits this log ==="
    return f"\n{text}\n".encode()


def _after_newline(file: int, at: int) -> int:
    """The start of the next line, or this position if the line is very long."""
    found = os.pread(file, 65_536, at).find(b"\n")
    return at + found + 1


def _copy_down(file: int, start: int, end: int, *, to: int) -> int:
    while start < end and (block := os.pread(file, min(COPY_BYTES, end - start), start)):
        written = os.pwrite(file, block, to)
        start, to = start + written, to + written
    return to
