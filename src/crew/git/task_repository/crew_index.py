"""Keeps crew's own index of a worktree, which no agent can write.

It follows HEAD only when git needs it: after most steps a look at the files is enough.
"""

import contextlib
import os
from pathlib import Path

from crew.git import lfs
from crew.git.commit_files import checked_out_in
from crew.git.git_command import ask
from crew.git.hardening import common_dir_of
from crew.git.task_repository.agent_refs import read_text
from crew.git.task_repository.store_objects import LONG_S
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.file_locks import held
from crew.system.foreign_files import tick_ns

_INDEXED = "crew-indexed"
"""In crew's git dir of a folder: the commit that the index matches."""
_LARGEST = 4096


def settle_index(path: Path, crew_git: Path) -> None:
    """Bring crew's index to HEAD, if HEAD has moved. Folders of gates have no branch."""
    if _has_branch(crew_git) and not _is_at(crew_git, _head_of(crew_git)):
        with held(crew_git / "crew.lock"):
            settle_held_index(path, crew_git)


def settle_held_index(path: Path, crew_git: Path, *, to: str | None = None) -> None:
    """The same for a caller that holds the lock of the folder, or for another commit than HEAD."""
    wanted = to or _head_of(crew_git)
    if _has_branch(crew_git) and not _is_at(crew_git, wanted):
        bring_index(path, crew_git, to=wanted or "HEAD")


@effect("git.bring_index")
def bring_index(path: Path, crew_git: Path, *, to: str = "HEAD", is_fresh: bool = False) -> None:
    """Make crew's index that of a commit, with its tree and the numbers of the files as they are.

    `is_fresh`: without the old numbers, so that git compares the content of every file. With
    `reset --mixed` one process would do, but it records no tree: then every look needs git.
    """
    env = {"GIT_DIR": str(crew_git), "GIT_WORK_TREE": str(path)}
    how = (to,) if is_fresh else ("--reset", to)
    (crew_git / _INDEXED).unlink(missing_ok=True)
    read = ask(path, "read-tree", *how, env=env, timeout_s=LONG_S)
    ask(path, "update-index", "-q", "--refresh", env=env, timeout_s=LONG_S)
    lfs.settle(path, crew_git)
    if read.code == 0:
        note_index(crew_git, to)


def confirm_index(worktree: Path, crew_git: Path, *, at_ns: int) -> None:
    """Date the index to this time: git has found no change since then.

    A file and the index may have the same time, because both were written in one tick of the clock.
    The file's numbers then cannot show a later change, so git compares its content each time. Once
    git has done so after the tick, the numbers are enough: a later change alters them. The worktree
    may be on a file system with longer ticks than that of the index.
    """
    file = crew_git / "index"
    with contextlib.suppress(OSError):  # then git compares again
        found = file.stat()
        if at_ns - found.st_mtime_ns > max(tick_ns(found), tick_ns(worktree.stat())):
            os.utime(file, ns=(at_ns, at_ns))


def note_index(crew_git: Path, commit: str = "HEAD") -> None:
    """Record that the index is that of this commit."""
    found = _head_of(crew_git) if commit == "HEAD" else commit
    if found is not None and _has_branch(crew_git):
        write_file(crew_git / _INDEXED, f"{found}\n".encode())


def _is_at(crew_git: Path, commit: str | None) -> bool:
    return commit is not None and read_text(f"{crew_git}/{_INDEXED}", most=_LARGEST) == commit


def _has_branch(crew_git: Path) -> bool:
    return (read_text(f"{crew_git}/HEAD", most=_LARGEST) or "").startswith("ref: ")


def _head_of(crew_git: Path) -> str | None:
    """The commit of HEAD; None if its branch has no file of its own."""
    head = checked_out_in(crew_git, common_dir_of(crew_git))
    return head.commit if head is not None else None
