"""Finds positions in a log from its end: the last lines, and the starts of the last steps.

A log may have gigabytes, and one line may be all of it, so it is read backwards, a block at a time,
and the last lines are looked for in its last megabytes only.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

BLOCK = 65_536
LAST_BYTES = 16 * 1_048_576
_LONGEST_HEADER = 1_024
_HEADER = re.compile(rb"\n=== [^\n]*?: step ([^\n]*?) ===(?=\n)")


def size_of(log: Path) -> int:
    """Its size in bytes; 0 before it exists."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def start_of_last(log: Path, count: int, *, end: int) -> int:
    """The start of the last lines before `end`; a final newline belongs to the last line.

    Lines that begin earlier than the last megabytes are cut.
    """
    wanted, before = count, end - 1
    first = max(0, end - LAST_BYTES)
    with log.open("rb") as file:
        while before > first:
            start = max(first, before - BLOCK)
            block = _read(file, start, before)
            found = block.count(b"\n")
            if found >= wanted:
                return start + _nth_from_end(block, wanted) + 1
            wanted, before = wanted - found, start
    return first


def _nth_from_end(block: bytes, count: int) -> int:
    place = len(block)
    for _ in range(count):
        place = block.rindex(b"\n", 0, place)
    return place


def steps_from_end(log: Path, *, end: int) -> Iterator[tuple[int, str]]:
    """Position and key of each step's header, `=== A: step 12.1/1/2/1 ===`, the last one first."""
    with log.open("rb") as file:
        while end > 0:
            start = max(0, end - BLOCK)
            # A header is found in the block that has the newline before it; the first one has none.
            block = _read(file, start, end + _LONGEST_HEADER)
            before = b"\n" if start == 0 else b""
            found = list(_HEADER.finditer(before + block))
            for match in reversed(found):
                position = start - len(before) + match.start() + 1
                if position - 1 < end:
                    yield position, match[1].decode(errors="replace")
            end = start


def _read(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start, os.SEEK_SET)
    return file.read(end - start)
