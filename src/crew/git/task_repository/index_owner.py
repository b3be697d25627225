"""Rewrites what an index says about files: the owner that an agent sees, and a file's numbers.

Git compares the owner of a file with the index. In the sandbox of a runner that is root, files
belong to an ordinary user: with root in the index, git would read every file of the worktree again,
and `git add` would store all of them, since the objects of the main repository are read-only there.

The numbers of a file in git-lfs are crew's to write: the index has the id of the pointer, so only a
filter, which crew never runs, would tell git that the file is the same.
"""

import os
import struct
from collections.abc import Iterator, Mapping

from crew.system.sandbox.bubblewrap import SEEN_OWNER

_HEADER = struct.Struct(">4sLL")
_OWNER = struct.Struct(">2L")
_OWNER_AT, _FLAGS_AT, _NAME_AT = 28, 60, 62  # in an entry with object ids of 20 bytes
_EXTENDED = 0x4000
_STAGE = 0x30  # in the first byte of the flags
_CHECKSUM = 20
_COMPRESSED = 4
_NUMBER, _DEVICE_AND_INODE, _TIMES = (struct.Struct(f">{count}L") for count in (1, 2, 4))
_DEVICE_AT, _INODE_AT, _SIZE_AT = 16, 20, 36
_LOW = 0xFFFFFFFF
_FULL = 0x80000000  # for a size whose last 32 bits are zeros


def owned_as_seen(index: bytes) -> bytes:
    """The index with the owner that git sees in the sandbox; unchanged if that is the real one."""
    if SEEN_OWNER is None or not _has_sandbox():
        return index
    try:
        return with_owner(index, *SEEN_OWNER)
    except (struct.error, ValueError, IndexError):
        return index  # git reads the files again


def _has_sandbox() -> bool:
    from crew.system.processes.process import working_bwrap  # noqa: PLC0415 - for root alone

    return working_bwrap() is not None


def with_owner(index: bytes, user: int, group: int) -> bytes:
    """The index with this owner in every entry. One with longer object ids stays as it is."""
    if (body := _body(index)) is None:
        return index
    for place, _ in _entries(body):
        _OWNER.pack_into(body, place + _OWNER_AT, user, group)
    return _signed(body, index)


def unlike_numbers(index: bytes, files: Mapping[str, os.stat_result]) -> frozenset[str]:
    """Those of the files whose numbers the index does not have; all, if crew cannot read it."""
    body = _body(index)
    known = {name: _numbers_at(body, at) for name, at in _places(body, files)} if body else {}
    return frozenset(name for name, found in files.items() if known.get(name) != _numbers_of(found))


def with_numbers(index: bytes, files: Mapping[str, os.stat_result]) -> bytes:
    """The index with the numbers of these files, which have the content that it names."""
    if (body := _body(index)) is None:
        return index
    for path, place in _places(body, files):
        found = files[path]
        times, inode, size = _numbers_of(found)
        _TIMES.pack_into(body, place, *times)
        _DEVICE_AND_INODE.pack_into(body, place + _DEVICE_AT, found.st_dev & _LOW, inode)
        _OWNER.pack_into(body, place + _OWNER_AT, found.st_uid & _LOW, found.st_gid & _LOW)
        _NUMBER.pack_into(body, place + _SIZE_AT, size)
    return _signed(body, index)


_Numbers = tuple[tuple[int, ...], int, int]


def _numbers_of(found: os.stat_result) -> _Numbers:
    times = (*divmod(found.st_ctime_ns, 10**9), *divmod(found.st_mtime_ns, 10**9))
    size = found.st_size & _LOW
    is_full = found.st_size > 0 and size == 0
    return tuple(one & _LOW for one in times), found.st_ino & _LOW, _FULL if is_full else size


def _numbers_at(body: bytearray, place: int) -> _Numbers:
    inode, size = (_NUMBER.unpack_from(body, place + at)[0] for at in (_INODE_AT, _SIZE_AT))
    return _TIMES.unpack_from(body, place), inode, size


def _places(body: bytearray, wanted: Mapping[str, object]) -> Iterator[tuple[str, int]]:
    """The wanted paths that are not in conflict, and where their entries are."""
    names = {os.fsencode(name): name for name in wanted}
    for place, path in _entries(body):
        is_merged = not body[place + _FLAGS_AT] & _STAGE
        if is_merged and path in names:
            yield names[path], place


def _body(index: bytes) -> bytearray | None:
    """The index without its checksum; None if it is damaged, or has longer object ids."""
    import hashlib  # noqa: PLC0415 - slow to load

    body, end = bytearray(index[:-_CHECKSUM]), index[-_CHECKSUM:]
    if hashlib.sha1(body, usedforsecurity=False).digest() != end and end.strip(b"\0"):
        return None
    return body if body.startswith(b"DIRC") and len(body) >= _HEADER.size else None


def _signed(body: bytearray, index: bytes) -> bytes:
    """With a new checksum, or without one, as the index was before."""
    import hashlib  # noqa: PLC0415 - slow to load

    end = index[-_CHECKSUM:]
    return bytes(body) + (hashlib.sha1(body, usedforsecurity=False).digest() if any(end) else end)


def _entries(body: bytearray) -> Iterator[tuple[int, bytes]]:
    """Where each entry begins, and its path."""
    _, version, count = _HEADER.unpack_from(body)
    place, path = _HEADER.size, b""
    for _ in range(count):
        flags = int.from_bytes(body[place + _FLAGS_AT : place + _NAME_AT])
        name = place + _NAME_AT + (2 if flags & _EXTENDED else 0)
        if version < _COMPRESSED:
            end = body.index(0, name)
            yield place, bytes(body[name:end])
            place += (end - place + 8) & ~7
            continue
        dropped, name = _varint(body, name)
        end = body.index(0, name)
        path = path[: len(path) - dropped] + bytes(body[name:end])
        yield place, path
        place = end + 1


def _varint(body: bytearray, at: int) -> tuple[int, int]:
    """Git's number of variable length, and where it ends: how much of the path before to drop."""
    value = body[at] & 0x7F
    while body[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (body[at] & 0x7F)
    return value, at + 1
