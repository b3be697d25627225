"""Reads the records of an SQLite file page by page, so that a damaged page hides only itself.

SQLite finds a page through others, and one damaged page hides all those below it. Here every page
of the file is read, as described in https://www.sqlite.org/fileformat2.html. What is on a page that
is not a page of records, or in a cell that makes no sense, is left out.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

from crew.domain.kernel.frozen import frozen

Value = int | float | str | bytes | None

_PAGE_SIZE = 4096
_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 0x0D, 0x0A, 0x02
_WAL_HEADER, _FRAME_HEADER = 32, 24
_MAGIC = b"SQLite format 3\0"
_NONSENSE = (struct.error, IndexError, ValueError, KeyError)
_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


@frozen
class Record:
    """One record. `rowid` is None in an index and in a table without row ids."""

    rowid: int | None
    values: tuple[Value, ...]


def read_records(path: Path, wal: Path) -> Iterator[Record]:
    """All records of a database and of its log of late changes (WAL)."""
    content = path.read_bytes()
    size = _page_size(content)
    pages = {
        number + 1: content[number * size : (number + 1) * size]
        for number in range(len(content) // size)
    }
    if wal.exists():
        pages |= _late_pages(wal.read_bytes(), size)
    unused = _unused(pages)
    for number in sorted(pages.keys() - unused):
        yield from _on_page(pages, number)


def _page_size(content: bytes) -> int:
    """The size in the header; SQLite's usual one if the header is damaged."""
    size = int.from_bytes(content[16:18], "big")
    is_sound = content.startswith(_MAGIC) and size >= 512 and size & (size - 1) == 0
    return size if is_sound else _PAGE_SIZE


def _late_pages(wal: bytes, size: int) -> dict[int, bytes]:
    """The pages of the log's complete transactions."""
    complete: dict[int, bytes] = {}
    begun: dict[int, bytes] = {}
    salts = wal[16:24]
    for at in range(_WAL_HEADER, len(wal) - _FRAME_HEADER - size + 1, _FRAME_HEADER + size):
        number, size_after, *_ = struct.unpack_from(">II", wal, at)
        if wal[at + 8 : at + 16] != salts:
            break
        begun[number] = wal[at + _FRAME_HEADER : at + _FRAME_HEADER + size]
        if size_after:
            complete |= begun
            begun = {}
    return complete


def _unused(pages: dict[int, bytes]) -> set[int]:
    """The pages in the list of free ones, which may have records of long ago."""
    found: set[int] = set()
    trunk = int.from_bytes(pages.get(1, b"")[32:36], "big")
    while trunk in pages and trunk not in found:
        found.add(trunk)
        page = pages[trunk]
        count = min(int.from_bytes(page[4:8], "big"), len(page) // 4 - 2)
        found |= {*struct.unpack_from(f">{count}I", page, 8)}
        trunk = int.from_bytes(page[:4], "big")
    return found


def _on_page(pages: dict[int, bytes], number: int) -> Iterator[Record]:
    page = pages[number]
    start = 100 if number == 1 else 0
    kind = page[start]
    if kind not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR):
        return
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    first = start + (12 if kind == _INDEX_INTERIOR else 8)
    for place in range(first, min(first + 2 * count, len(page) - 1), 2):
        try:
            yield _in_cell(pages, page, int.from_bytes(page[place : place + 2], "big"), kind)
        except _NONSENSE:
            continue


def _in_cell(pages: dict[int, bytes], page: bytes, at: int, kind: int) -> Record:
    length, at = _varint(page, at + (4 if kind == _INDEX_INTERIOR else 0))
    rowid = None
    if kind == _TABLE_LEAF:
        rowid, at = _varint(page, at)
    if length > len(pages) * len(page):
        raise ValueError("longer than the file")
    here = _length_on_page(length, len(page), is_table=kind == _TABLE_LEAF)
    payload = page[at : at + here]
    if here < length:
        payload += _overflow(pages, int.from_bytes(page[at + here : at + here + 4], "big"), length)
    return Record(rowid=rowid, values=tuple(_values(payload[:length])))


def _length_on_page(length: int, usable: int, *, is_table: bool) -> int:
    """How much of a record is on its page; the rest is on others."""
    most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
    if length <= most:
        return length
    least = (usable - 12) * 32 // 255 - 23
    rest = least + (length - least) % (usable - 4)
    return rest if rest <= most else least


def _overflow(pages: dict[int, bytes], number: int, length: int) -> bytes:
    content = bytearray()
    while number and len(content) < length:
        page = pages[number]
        content += page[4:]
        number = int.from_bytes(page[:4], "big")
    return bytes(content)


def _values(payload: bytes) -> Iterator[Value]:
    end, at = _varint(payload, 0)
    body = end
    while at < end:
        kind, at = _varint(payload, at)
        value, body = _value(payload, body, kind)
        yield value


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind in (0, 8, 9):
        return {0: None, 8: 0, 9: 1}[kind], at
    is_number = kind <= 7
    size = _INTEGER_SIZES.get(kind, 8) if is_number else (kind - 12) // 2
    content = payload[at : at + size]
    if size < 0 or len(content) != size:
        raise ValueError("the record is cut off")
    if kind == 7:
        return struct.unpack(">d", content)[0], at + size
    if is_number:
        return int.from_bytes(content, "big", signed=True), at + size
    return content.decode() if kind % 2 else content, at + size


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of up to nine bytes, and the place after it."""
    number = 0
    for count in range(8):
        byte = content[at + count]
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            return number, at + count + 1
    return number << 8 | content[at + 8], at + 9
