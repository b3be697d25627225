"""Gives an index the owner that an agent sees.

Git compares the owner of a file with the index. In the sandbox of a runner that is root, files
belong to an ordinary user: with root in the index, git would read every file of the worktree again,
and `git add` would store all of them, since the objects of the main repository are read-only there.
"""

import struct

from crew.system.sandbox.bubblewrap import SEEN_OWNER

_HEADER = struct.Struct(">4sLL")
_OWNER = struct.Struct(">2L")
_OWNER_AT, _FLAGS_AT, _NAME_AT = 28, 60, 62  # in an entry with object ids of 20 bytes
_EXTENDED = 0x4000
_CHECKSUM = 20
_COMPRESSED = 4


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
    import hashlib  # noqa: PLC0415 - slow to load

    body, end = bytearray(index[:-_CHECKSUM]), index[-_CHECKSUM:]
    is_signed = hashlib.sha1(body, usedforsecurity=False).digest() == end
    if not is_signed and end.strip(b"\0"):
        return index
    sign, version, count = _HEADER.unpack_from(body)
    if sign != b"DIRC":
        return index
    place = _HEADER.size
    for _ in range(count):
        _OWNER.pack_into(body, place + _OWNER_AT, user, group)
        place = _end_of_entry(body, place, is_compressed=version >= _COMPRESSED)
    return bytes(body) + (hashlib.sha1(body, usedforsecurity=False).digest() if is_signed else end)


def _end_of_entry(body: bytearray, place: int, *, is_compressed: bool) -> int:
    flags = int.from_bytes(body[place + _FLAGS_AT : place + _NAME_AT])
    name = place + _NAME_AT + (2 if flags & _EXTENDED else 0)
    if not is_compressed:
        return place + ((body.index(0, name) - place + 8) & ~7)
    while body[name] & 0x80:  # how much of the name before it to drop
        name += 1
    return body.index(0, name + 1) + 1
