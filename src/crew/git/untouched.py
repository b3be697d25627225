"""Whether a worktree is exactly what its HEAD says, found out without starting git.

Only a plain yes counts: whatever is unusual, changed, too new to be sure of or too much to look at
is left to git itself. The checks are stricter than git's own, which trusts the same numbers.
"""

import hashlib
import os
import re
import stat
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

from crew.domain.frozen import frozen
from crew.git.hardening import common_dir_of

MOST_FILES = 1000
"""For more files git is quicker than Python, its start included."""

_HEADER = struct.Struct(">4sLL")
_ENTRY = struct.Struct(">10L20sH")
_EXTENSION = struct.Struct(">4sL")
_LENGTH_OF_NAME = 0x0FFF
_CHECKSUM = 20
_COMMIT_ID = re.compile(rb"[0-9a-f]{40}")
_TREE = re.compile(rb"commit \d+\0tree ([0-9a-f]{40})\n")

Numbers = tuple[int, ...]
"""Of a file: ctime and mtime in ns, inode, mode as git keeps it, owner, group and size."""


@frozen
class Index:
    """What git knows of a worktree's files; `tree` is the one it stands for, if it is known."""

    files: Mapping[str, Numbers]
    tree: str
    written_ns: int


def untouched_head(worktree: Path, git_dir: Path) -> tuple[str, str | None] | None:
    """The commit and the branch of a worktree in which nothing at all is changed or added."""
    index = read_index(git_dir)
    if index is None or not index.tree:
        return None
    try:
        head = (git_dir / "HEAD").read_bytes().strip()
        ref = head.removeprefix(b"ref: ") if head.startswith(b"ref: refs/heads/") else None
        common = common_dir_of(git_dir)
        commit = head if ref is None else (common / os.fsdecode(ref)).read_bytes().strip()
        if not _COMMIT_ID.fullmatch(commit) or _tree_of(common, commit.decode()) != index.tree:
            return None
        if not _is_all_there_is(worktree, index, is_unchanged=True):
            return None
    except (OSError, zlib.error):
        return None
    branch = None if ref is None else os.fsdecode(ref.removeprefix(b"refs/heads/"))
    return commit.decode(), branch


def holds_only_tracked(worktree: Path, git_dir: Path) -> bool:
    """No file is there that the index does not name, ignored ones included."""
    index = read_index(git_dir)
    try:
        return index is not None and _is_all_there_is(worktree, index, is_unchanged=False)
    except OSError:
        return False


def read_index(git_dir: Path) -> Index | None:
    """The index, if it is of the common kind: whole, not large, and every file simply there."""
    try:
        with (git_dir / "index").open("rb") as file:
            written_ns = os.fstat(file.fileno()).st_mtime_ns
            raw = file.read()
    except OSError:
        return None
    if len(raw) < _HEADER.size + _CHECKSUM:
        return None
    sign, version, count = _HEADER.unpack_from(raw)
    if sign != b"DIRC" or version not in {2, 3} or count > MOST_FILES:
        return None
    if hashlib.sha1(raw[:-_CHECKSUM], usedforsecurity=False).digest() != raw[-_CHECKSUM:]:
        return None
    files, end = _files(raw, count)
    tree = _written_tree(raw, end)
    if files is None or tree is None:
        return None
    return Index(files=files, tree=tree, written_ns=written_ns)


def _files(raw: bytes, count: int) -> tuple[dict[str, Numbers] | None, int]:
    files: dict[str, Numbers] = {}
    place = _HEADER.size
    for _ in range(count):
        *numbers, _, flags = _ENTRY.unpack_from(raw, place)
        if flags & ~_LENGTH_OF_NAME:  # conflicting, or not to be looked at for some reason
            return None, 0
        begin = place + _ENTRY.size
        end = raw.index(b"\0", begin)
        ctime, ctime_ns, mtime, mtime_ns, _, inode, mode, owner, group, size = numbers
        files[os.fsdecode(raw[begin:end])] = (
            *(ctime * 10**9 + ctime_ns, mtime * 10**9 + mtime_ns),
            *(inode, mode, owner, group, size),
        )
        place += (end - place + 8) & ~7
    return files, place


def _written_tree(raw: bytes, place: int) -> str | None:
    """The tree that git noted when it wrote the index, "" for none; None for what we do not know.

    An extension whose name begins with a small letter must be understood.
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


def _tree_of(common: Path, commit: str) -> str:
    """Of a commit with a file of its own; none that git has packed was made just now."""
    raw = (common / "objects" / commit[:2] / commit[2:]).read_bytes()
    found = _TREE.match(zlib.decompressobj().decompress(raw, 128))
    return found[1].decode() if found else "unknown"


def _is_all_there_is(worktree: Path, index: Index, *, is_unchanged: bool) -> bool:
    """Every file there is in the index; `is_unchanged`: and the same, and none is gone."""
    seen, folders = 0, [""]
    while folders:
        folder = folders.pop()
        with os.scandir(worktree / folder) as entries:
            for entry in entries:
                path = folder + entry.name
                if path == ".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{path}/")
                    continue
                known = index.files.get(path)
                if known is None or (is_unchanged and not _is_same(entry, known, index)):
                    return False
                seen += 1
    return not is_unchanged or seen == len(index.files)


def _is_same(entry: "os.DirEntry[str]", known: Numbers, index: Index) -> bool:
    """Also older than the index: of a file that is as new, nobody knows what it was then."""
    found = entry.stat(follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        mode = stat.S_IFLNK
    else:
        mode = stat.S_IFMT(found.st_mode) | (0o755 if found.st_mode & stat.S_IXUSR else 0o644)
    numbers = (
        *(found.st_ctime_ns, found.st_mtime_ns, found.st_ino & 0xFFFFFFFF, mode),
        *(found.st_uid, found.st_gid, found.st_size & 0xFFFFFFFF),
    )
    return numbers == known and max(found.st_mtime_ns, found.st_ctime_ns) < index.written_ns
