"""Checks without git whether a worktree has exactly the content of its HEAD.

A yes is always right. In unusual, changed, too recent or too large worktrees git decides. The
checks are stricter than git's own, which trusts the same numbers.

Kept: without it a step costs 30% more of crew's CPU time (`python -m bench cpu`).
"""

import os
import stat
from pathlib import Path

from crew.git.commit_files import CheckedOut, checked_out_in, read_commit
from crew.git.hardening import common_dir_of
from crew.git.task_repository.agent_refs import agent_git_of
from crew.git.worktrees.index_file import Index, Numbers, read_index
from crew.git.worktrees.worktree_admin import is_own


def untouched_head(worktree: Path, git_dir: Path) -> CheckedOut | None:
    """The HEAD of a worktree without changed or added files; None if unsure."""
    common = common_dir_of(git_dir)
    head = checked_out_in(git_dir, common)
    commit = read_commit(common, head.commit) if head is not None else None
    index = _index_of(git_dir, commit.tree) if commit is not None else None
    if index is None:
        return None
    try:
        return head if _is_all_there_is(worktree, index, is_unchanged=True) else None
    except OSError:
        return None


def _index_of(git_dir: Path, tree: str) -> Index | None:
    """A plain index of this tree. For a repository of its own, the agent's must be one.

    Crew's own decides as soon as it is that of HEAD: an agent could write false numbers.
    """
    index = read_index(git_dir)
    is_right = index is not None and index.is_plain and index.tree == tree
    if not is_own(git_dir):
        return index if is_right else None
    theirs = read_index(agent_git_of(git_dir))
    if theirs is None or not theirs.is_plain or theirs.tree != tree:
        return None
    return index if is_right else theirs


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


def _is_all_there_is(worktree: Path, index: Index, *, is_unchanged: bool) -> bool:
    """Whether every file is in the index. `is_unchanged`: and unchanged, and none is missing."""
    seen, folders, top = 0, [""], str(worktree)
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
                known = index.files.get(path) if _is_plain(entry) else None
                if known is None or (is_unchanged and not _is_same(entry, known, index)):
                    return False
                seen += 1
    return not is_unchanged or seen == len(index.files)


def _is_plain(entry: "os.DirEntry[str]") -> bool:
    """Whether it is a file or a link: git would wait for a pipe."""
    return entry.is_file(follow_symlinks=False) or entry.is_symlink()


def _is_same(entry: "os.DirEntry[str]", known: Numbers, index: Index) -> bool:
    """Whether the numbers match and the file is older than the index, so that they are valid."""
    found = entry.stat(follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        mode = stat.S_IFLNK
    else:
        mode = stat.S_IFMT(found.st_mode) | (0o755 if found.st_mode & stat.S_IXUSR else 0o644)
    numbers = (
        *(found.st_ctime_ns, found.st_mtime_ns, found.st_ino & 0xFFFFFFFF, mode),
        found.st_size & 0xFFFFFFFF,
    )
    return numbers == known and max(found.st_mtime_ns, found.st_ctime_ns) < index.written_ns
