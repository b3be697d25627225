"""Checks without git whether a worktree has exactly the content of its HEAD.

A yes is always right. In unusual, changed, too recent or too large worktrees git decides. The
checks are stricter than git's own, which trusts the same numbers.

Kept: without it a step costs 30% more of crew's CPU time (`python -m bench cpu`).
"""

import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

from crew.git.commit_files import CheckedOut, checked_out_in, read_commit
from crew.git.committed_files import CommittedFiles
from crew.git.task_repository.agent_refs import agent_git_of
from crew.git.task_repository.plain_objects import NotPlain
from crew.git.worktrees.index_file import SYMLINK, Index, Numbers, read_index
from crew.git.worktrees.worktree_admin import is_own, main_git_dir

_KIND = 0o170000  # the bits of a mode that tell a file from a link
_LOW = 0xFFFFFFFF  # an index has no more of a number

Check = Callable[["os.DirEntry[str]", str], bool]
"""Whether a file is what is expected at its path."""


def untouched_head(worktree: Path, git_dir: Path) -> CheckedOut | None:
    """The HEAD of a worktree without changed or added files; None if unsure."""
    common = main_git_dir(git_dir)
    head = checked_out_in(git_dir, common)
    commit = read_commit(common, head.commit) if head is not None else None
    expected = _expected(git_dir, common, commit.tree) if commit is not None else None
    if expected is None:
        return None
    index, check = expected
    try:
        return head if _is_unchanged(worktree, index, check) else None
    except (OSError, NotPlain):
        return None


def _expected(git_dir: Path, common: Path, tree: str) -> tuple[Index, Check] | None:
    """The index that names the files of this tree, and how to check each of them.

    Crew's own index of a task follows HEAD only when git needs it. Until then the agent's names
    the files, and an agent can write anything there: a file counts only if crew's index has the
    same numbers and content for it, or if its content is that of the commit.
    """
    index = read_index(git_dir)
    if index is None or not index.is_plain:
        return None
    if index.tree == tree:
        return index, partial(_has_valid_numbers, index)
    theirs = read_index(agent_git_of(git_dir)) if is_own(git_dir) else None
    if theirs is None or not theirs.is_plain or theirs.tree != tree:
        return None
    return theirs, partial(_is_believed, theirs, index, CommittedFiles(common, tree))


def _is_believed(
    theirs: Index, ours: Index, committed: CommittedFiles, entry: "os.DirEntry[str]", path: str
) -> bool:
    is_known = ours.ids.get(path) == theirs.ids[path] and _has_valid_numbers(ours, entry, path)
    return is_known or committed.has(path, entry)


def _is_unchanged(worktree: Path, index: Index, check: Check) -> bool:
    """Whether every file is in the index and passes the check, and none is missing."""
    seen, folders, top, files = 0, [""], str(worktree), index.files
    while folders:
        folder = folders.pop()
        with os.scandir(f"{top}/{folder}") as entries:
            for entry in entries:
                path = folder + entry.name
                if path == ".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{path}/")
                    continue
                # Git would wait for a pipe.
                is_plain = entry.is_file(follow_symlinks=False) or entry.is_symlink()
                if path not in files or not is_plain or not check(entry, path):
                    return False
                seen += 1
    return seen == len(files)


def has_kind(entry: "os.DirEntry[str]", mode: int) -> bool:
    """Whether it is a link or a file, as this mode of git says."""
    return entry.is_symlink() if mode == SYMLINK else entry.is_file(follow_symlinks=False)


def has_numbers(entry: "os.DirEntry[str]", known: Numbers) -> bool:
    """Whether the numbers of a file or a link are these."""
    return _numbers(entry.stat(follow_symlinks=False)) == known


def _has_valid_numbers(index: Index, entry: "os.DirEntry[str]", path: str) -> bool:
    """Whether the numbers match and the file is older than the index, so that they are valid."""
    known = index.files.get(path)
    if known is None:
        return False
    found = entry.stat(follow_symlinks=False)
    written = index.written_ns
    is_older = found.st_mtime_ns < written and found.st_ctime_ns < written
    return is_older and _numbers(found) == known


def _numbers(found: os.stat_result) -> Numbers:
    """What an index has of a file or a link, for git's own modes."""
    kind = found.st_mode & _KIND
    if kind != stat.S_IFLNK:
        kind |= 0o755 if found.st_mode & stat.S_IXUSR else 0o644
    return (
        found.st_ctime_ns,
        found.st_mtime_ns,
        found.st_ino & _LOW,
        kind,
        found.st_size & _LOW,
    )
