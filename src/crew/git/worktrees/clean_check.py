"""Checks without git whether a worktree has exactly the content of its HEAD.

Only a certain yes counts. In unusual, changed, too recent or too large worktrees git decides. The
checks are stricter than git's own, which trusts the same numbers.

Kept: without it a step costs 30% more of crew's CPU time (`python -m bench cpu`).
"""

import os
import re
import stat
import zlib
from pathlib import Path

from crew.git.hardening import common_dir_of
from crew.git.worktrees.index_file import Index, Numbers, read_index

_COMMIT_ID = re.compile(rb"[0-9a-f]{40}")
_TREE = re.compile(rb"commit \d+\0tree ([0-9a-f]{40})\n")


def untouched_head(worktree: Path, git_dir: Path) -> tuple[str, str | None] | None:
    """The commit and branch of a worktree without changed or added files; None if unsure."""
    index = read_index(git_dir)
    if index is None or not index.tree or not index.is_plain:
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
    """Whether every file, ignored ones included, is in the index."""
    index = read_index(git_dir)
    try:
        return (
            index is not None
            and index.is_plain
            and _is_all_there_is(worktree, index, is_unchanged=False)
        )
    except OSError:
        return False


def _tree_of(common: Path, commit: str) -> str:
    """The tree of a commit with its own file. A packed commit is not recent anyway."""
    raw = (common / "objects" / commit[:2] / commit[2:]).read_bytes()
    found = _TREE.match(zlib.decompressobj().decompress(raw, 128))
    return found[1].decode() if found else "unknown"


def _is_all_there_is(worktree: Path, index: Index, *, is_unchanged: bool) -> bool:
    """Whether every file is in the index. `is_unchanged`: and unchanged, and none is missing."""
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
    """Whether the numbers match and the file is older than the index, so that they are valid."""
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
