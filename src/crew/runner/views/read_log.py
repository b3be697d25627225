"""Reads the log of a task: its bytes, its lines or its entries, once or while it is written."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from crew.agents.log_reader import LogReader
from crew.domain.kernel.log_entry import LogEntry
from crew.domain.kernel.text import LineSplitter
from crew.runner.views.log_end import BLOCK, size_of, start_of_last

LOOK_EVERY_S = 0.2
LONGEST_LINE = 8 * 1_048_576  # a tool's result may carry an image
_LINES_PER_ITEM = (4, 64, 1_024)

T = TypeVar("T")


def chunks_between(log: Path, start: int, end: int) -> Iterator[bytes]:
    if start >= end:
        return
    with log.open("rb") as file:
        file.seek(start)
        while start < end and (chunk := file.read(min(BLOCK, end - start))):
            start += len(chunk)
            yield chunk


def lines_of(chunks: Iterable[bytes]) -> Iterator[str]:
    splitter = LineSplitter(LONGEST_LINE)
    for chunk in chunks:
        yield from splitter.feed(chunk)
    yield from splitter.close()


def entries_of_lines(lines: Iterable[str]) -> Iterator[LogEntry]:
    reader = LogReader()
    for line in lines:
        yield from reader.read(line)
    yield from reader.close()


def entries_of_chunks(chunks: Iterable[bytes]) -> Iterator[LogEntry]:
    """The entries; plain lines that follow each other are one, which is many times as fast."""
    splitter, reader = LineSplitter(LONGEST_LINE), LogReader()
    for chunk in chunks:
        if text := splitter.feed_text(chunk):
            yield from reader.read_text(text)
    for line in splitter.close():
        yield from reader.read(line)
    yield from reader.close()


def last_chunks(log: Path, count: int) -> Iterator[bytes]:
    """The bytes of the last lines up to the present end."""
    end = size_of(log)
    return chunks_between(log, start_of_last(log, count, end=end) if end else 0, end)


def last_items(log: Path, count: int, items: Callable[[Iterable[LogEntry]], list[T]]) -> list[T]:
    """The last items that `items` makes of entries, from as few lines of the log as possible.

    Most lines of some programs are no entry, and one entry may be many items.
    """
    found: list[T] = []
    for lines in _LINES_PER_ITEM:
        found = items(entries_of_lines(lines_of(last_chunks(log, lines * count))))
        if len(found) >= count:
            break
    return found[-count:]


def followed(log: Path, start: int) -> Iterator[bytes]:
    """The bytes as they are written, even before the log exists. An empty chunk is a pause."""
    at = start
    while True:
        size = size_of(log)
        at = min(at, size)  # a log that was truncated is read from its start
        for chunk in chunks_between(log, at, size):
            at += len(chunk)
            yield chunk
        yield b""
        time.sleep(LOOK_EVERY_S)


def followed_entries(log: Path, start: int) -> Iterator[LogEntry]:
    splitter, reader = LineSplitter(LONGEST_LINE), LogReader()
    for chunk in followed(log, start):
        if text := splitter.feed_text(chunk):
            yield from reader.read_text(text)
        if not chunk:
            yield from reader.pause()
