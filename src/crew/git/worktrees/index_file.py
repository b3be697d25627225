"""Reads the index of a worktree without starting git: its files and special entries.

Only a common index is read here: valid, small, in one file. Git reads the others.
"""

import os
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.git_command import ask, git
from crew.system.foreign_files import NotBelieved, read_with_stamp

MOST_FILES = 1000
"""For more files git is faster than Python, even with its start."""

_LARGEST = 10_000_000
_MOST_KEPT = 64
_HEADER = struct.Struct(">4sLL")
_ENTRY = struct.Struct(">10L20sH")
_EXTENSION = struct.Struct(">4sL")
_CHECKSUM = 20
_LENGTH_OF_NAME, _ASSUMED_UNCHANGED, _EXTENDED = 0x0FFF, 0x8000, 0x4000
_SKIPPED = 0x40  # in the first byte of the extended flags
LINK, SYMLINK = 0o160000, 0o120000
"""Git's modes of a submodule's commit, and of a symbolic link."""
_LISTED_LINK = b"160000 "

Numbers = tuple[int, ...]
"""The numbers of a file: ctime and mtime in ns, inode, git's mode, and size.

Its owner does not count: a change of it changes the ctime, and in a sandbox it has another number.
"""


@frozen
class Marks:
    """Files that git does not check, and the commits of submodules by path.

    A `skipped` file may be missing on purpose, as in a sparse checkout. `folders` are the parent
    folders of all files, without the top.
    """

    assumed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()


@frozen
class Index:
    """Git's data about a worktree's files. `tree` is the tree of the index, if known.

    `ids` are the ids of the contents. `is_plain`: no entry is hidden, in conflict or only intended.
    """

    files: Mapping[str, Numbers]
    ids: Mapping[str, bytes]
    tree: str
    written_ns: int
    marks: Marks
    is_plain: bool


def read_index(git_dir: Path) -> Index | None:
    """The index, if it is a common one. An agent may have put anything there."""
    try:
        raw, found = read_with_stamp(f"{git_dir}/index", max_bytes=_LARGEST)
    except (OSError, NotBelieved):
        return None
    return _parse_once(raw, found.st_mtime_ns)


@lru_cache(maxsize=_MOST_KEPT)
def _parse_once(raw: bytes, written_ns: int) -> Index | None:
    """Most indexes are read twice: after a step and before the next one."""
    return parse_index(raw, written_ns=written_ns)


def parse_index(raw: bytes, *, written_ns: int = 0) -> Index | None:
    """The same for the content of an index. An agent may have written it."""
    try:
        return _parse(raw, written_ns)
    except (struct.error, ValueError, IndexError):
        return None


def _parse(raw: bytes, written_ns: int) -> Index | None:
    if len(raw) < _HEADER.size + _CHECKSUM:
        return None
    sign, version, count = _HEADER.unpack_from(raw)
    if sign != b"DIRC" or version not in {2, 3} or count > MOST_FILES:
        return None
    import hashlib  # noqa: PLC0415 - a tenth of what `prune` loads, and it reads an index rarely

    if hashlib.sha1(raw[:-_CHECKSUM], usedforsecurity=False).digest() != raw[-_CHECKSUM:]:
        return None
    files: dict[str, Numbers] = {}
    ids: dict[str, bytes] = {}
    flagged: dict[str, int] = {}
    end = _read_entries(raw, count, files, ids, flagged)
    tree = _written_tree(raw, end)
    if tree is None:
        return None
    marks = Marks(
        assumed=tuple(path for path, mark in flagged.items() if mark == _ASSUMED_UNCHANGED),
        skipped=tuple(path for path, mark in flagged.items() if mark == _SKIPPED),
        links={path: ids[path].hex() for path, (*_, mode, _size) in files.items() if mode == LINK},
    )
    is_plain = not flagged
    return Index(
        files=files, ids=ids, tree=tree, written_ns=written_ns, marks=marks, is_plain=is_plain
    )


def load_marks(worktree: Path, index: Index | None, env: Mapping[str, str] | None) -> Marks:
    """The marks of any index; none if it cannot be read. `env` names it for git."""
    if index is not None:
        return replace(index.marks, folders=folders_of(index.files))
    answer = ask(worktree, "ls-files", "-z", "-v", "--stage", env=env)
    entries = [entry for entry in answer.out.split(b"\0") if entry]
    links = [entry for entry in entries if entry[2:].startswith(_LISTED_LINK)]
    return Marks(
        assumed=tuple(_listed_path(entry) for entry in entries if b"a" <= entry[:1] != b"s"),
        skipped=tuple(_listed_path(entry) for entry in entries if entry[:1] in {b"S", b"s"}),
        links={_listed_path(entry): entry.split(b" ", 3)[2].decode() for entry in links},
        folders=folders_of(map(_listed_path, entries)),
    )


def tracked_modes(
    worktree: Path, index: Index | None, env: Mapping[str, str] | None
) -> Mapping[str, int]:
    """Git's modes of the files that an index wants in the worktree. `env` names it for git."""
    if index is not None:
        skipped = {*index.marks.skipped}
        return {path: numbers[3] for path, numbers in index.files.items() if path not in skipped}
    listed = git(worktree, "ls-files", "-z", "-v", "--stage", env=env)
    entries = (entry for entry in listed.split("\0") if entry[:1] not in {"", "S", "s"})
    parts = (entry[2:].partition("\t") for entry in entries)
    return {path: int(numbers.partition(" ")[0], 8) for numbers, _, path in parts}


def folders_of(paths: Iterable[str]) -> frozenset[str]:
    """The parent folders of these paths, without the top."""
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return frozenset(found)


def _listed_path(entry: bytes) -> str:
    return os.fsdecode(entry.partition(b"\t")[2])


def _read_entries(
    raw: bytes,
    count: int,
    files: dict[str, Numbers],
    ids: dict[str, bytes],
    flagged: dict[str, int],
) -> int:
    """Fill in the three tables. `flagged` gets the special entries."""
    place = _HEADER.size
    for _ in range(count):
        *numbers, object_id, flags = _ENTRY.unpack_from(raw, place)
        begin = place + _ENTRY.size + (2 if flags & _EXTENDED else 0)
        end = raw.index(b"\0", begin)
        path = os.fsdecode(raw[begin:end])
        if flags & ~_LENGTH_OF_NAME:
            is_skipped = flags & _EXTENDED and raw[begin - 2] & _SKIPPED
            flagged[path] = _SKIPPED if is_skipped else flags & _ASSUMED_UNCHANGED
        ctime, ctime_ns, mtime, mtime_ns, _, inode, mode, _, _, size = numbers
        ids[path] = object_id
        files[path] = (
            *(ctime * 10**9 + ctime_ns, mtime * 10**9 + mtime_ns),
            *(inode, mode, size),
        )
        place += (end - place + 8) & ~7
    return place


def _written_tree(raw: bytes, place: int) -> str | None:
    """The tree that git recorded in the index, "" for none; None if we cannot parse it.

    A reader must know every extension whose name begins with a lowercase letter.
    """
    tree = ""
    while place < len(raw) - _CHECKSUM:
        name, size = _EXTENSION.unpack_from(raw, place)
        place += _EXTENSION.size
        if name[:1].islower():
            return None
        if name == b"TREE":
            found = re.match(rb"\0\d+ \d+\n(.{20})", raw[place : place + size], re.DOTALL)
            tree = found[1].hex() if found else ""
        place += size
    return tree
