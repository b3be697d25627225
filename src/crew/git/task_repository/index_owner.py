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

from crew.domain.kernel.frozen import frozen
from crew.system.sandbox.bubblewrap import SEEN_OWNER

_HEADER = struct.Struct(">4sLL")
_OWNER = struct.Struct(">2L")
_OWNER_AT, _ID_AT = 28, 40
_EXTENDED = 0x4000
_STAGE = 0x30  # in the first byte of the flags
_CHECKSUMS = {"sha1": 20, "sha256": 32}
_LONGEST_ID = 32
_COMPRESSED = 4
_NUMBER, _DEVICE_AND_INODE, _TIMES = (struct.Struct(f">{count}L") for count in (1, 2, 4))
_DEVICE_AT, _INODE_AT, _SIZE_AT = 16, 20, 36
_LOW = 0xFFFFFFFF
_FULL = 0x80000000  # for a size whose last 32 bits are zeros


@frozen
class _Unsigned:
    """An index without its checksum: its method, which also makes the ids of objects."""

    body: bytearray
    method: str
    id_size: int
    is_signed: bool

    @property
    def flags_at(self) -> int:
        return _ID_AT + self.id_size

    def signed(self) -> bytes:
        """With a new checksum, or without one, as it was before."""
        import hashlib  # noqa: PLC0415 - slow to load

        if not self.is_signed:
            return bytes(self.body) + bytes(self.id_size)
        digest = hashlib.new(self.method, self.body, usedforsecurity=False).digest()
        return bytes(self.body) + digest


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
    """The index with this owner in every entry."""
    if (found := _unsigned(index)) is None:
        return index
    for place, _ in _entries(found):
        _OWNER.pack_into(found.body, place + _OWNER_AT, user, group)
    return found.signed()


def unlike_numbers(index: bytes, files: Mapping[str, os.stat_result]) -> frozenset[str]:
    """Those of the files whose numbers the index does not have; all, if crew cannot read it."""
    read = _unsigned(index)
    known = {name: _numbers_at(read.body, at) for name, at in _places(read, files)} if read else {}
    return frozenset(name for name, found in files.items() if known.get(name) != _numbers_of(found))


def with_numbers(index: bytes, files: Mapping[str, os.stat_result]) -> bytes:
    """The index with the numbers of these files, which have the content that it names."""
    if (read := _unsigned(index)) is None:
        return index
    body = read.body
    for path, place in _places(read, files):
        found = files[path]
        times, inode, size = _numbers_of(found)
        _TIMES.pack_into(body, place, *times)
        _DEVICE_AND_INODE.pack_into(body, place + _DEVICE_AT, found.st_dev & _LOW, inode)
        _OWNER.pack_into(body, place + _OWNER_AT, found.st_uid & _LOW, found.st_gid & _LOW)
        _NUMBER.pack_into(body, place + _SIZE_AT, size)
    return read.signed()


_Numbers = tuple[tuple[int, ...], int, int]


def _numbers_of(found: os.stat_result) -> _Numbers:
    times = (*divmod(found.st_ctime_ns, 10**9), *divmod(found.st_mtime_ns, 10**9))
    size = found.st_size & _LOW
    is_full = found.st_size > 0 and size == 0
    return tuple(one & _LOW for one in times), found.st_ino & _LOW, _FULL if is_full else size


def _numbers_at(body: bytearray, place: int) -> _Numbers:
    inode, size = (_NUMBER.unpack_from(body, place + at)[0] for at in (_INODE_AT, _SIZE_AT))
    return _TIMES.unpack_from(body, place), inode, size


def _places(index: _Unsigned, wanted: Mapping[str, object]) -> Iterator[tuple[str, int]]:
    """The wanted paths that are not in conflict, and where their entries are."""
    names = {os.fsencode(name): name for name in wanted}
    for place, path in _entries(index):
        is_merged = not index.body[place + index.flags_at] & _STAGE
        if is_merged and path in names:
            yield names[path], place


def _unsigned(index: bytes) -> _Unsigned | None:
    """The index without its checksum, or without the zeros in its place; None if it is damaged."""
    import hashlib  # noqa: PLC0415 - slow to load

    if not index.startswith(b"DIRC") or len(index) < _HEADER.size + _LONGEST_ID:
        return None
    for method, size in _CHECKSUMS.items():
        body, end = index[:-size], index[-size:]
        if hashlib.new(method, body, usedforsecurity=False).digest() == end:
            return _Unsigned(body=bytearray(body), method=method, id_size=size, is_signed=True)
    size = _CHECKSUMS["sha1"]  # without a checksum, nothing tells longer ids
    if any(index[-size:]) or not any(index[-_LONGEST_ID:-size]):
        return None
    return _Unsigned(body=bytearray(index[:-size]), method="sha1", id_size=size, is_signed=False)


def _entries(index: _Unsigned) -> Iterator[tuple[int, bytes]]:
    """Where each entry begins, and its path."""
    body = index.body
    _, version, count = _HEADER.unpack_from(body)
    place, path = _HEADER.size, b""
    for _ in range(count):
        name = place + index.flags_at + 2
        flags = int.from_bytes(body[name - 2 : name])
        name += 2 if flags & _EXTENDED else 0
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
