"""Finds pipes, sockets and devices where git expects a file: git would wait for them, or fail.

An agent's program can leave them in its worktree. They have no content, so crew deletes them once
no process of the task runs. Other special files are of no interest to git and stay.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from crew.git.git_command import ask
from crew.system.crash_points import effect

_READ_BY_GIT = frozenset({".gitignore", ".gitattributes", ".gitmodules", ".mailmap"})


def drop_special_files(worktree: Path, git_dir: Path) -> bool:
    """Delete them, and return whether there was one. Only while no process of the task runs."""
    found = special_files(worktree, git_dir)
    for name in found:
        _note(worktree / name)
        _drop(worktree / name)
    return bool(found)


def _note(file: Path) -> None:
    import logging  # noqa: PLC0415 - slow to load, and there is seldom one

    log = logging.getLogger(__name__)
    log.info("%s was no file: crew deleted it, since git would wait for it", file)


@effect("git.drop_special_file")
def _drop(file: Path) -> None:
    file.unlink(missing_ok=True)


def special_files(worktree: Path, git_dir: Path) -> tuple[str, ...]:
    """The paths of special files with a name that git reads, or in the place of a tracked file."""
    found = tuple(_special(str(worktree)))
    if not found:
        return ()
    read = {name for name in found if name.rpartition("/")[2] in _READ_BY_GIT}
    args = ("--literal-pathspecs", "ls-files", "-z", "--cached", "--", *found)
    env = {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(worktree)}
    listed = ask(worktree, *args, env=env)
    return tuple(sorted(read | ({*os.fsdecode(listed.out).split("\0")} & {*found})))


def _special(top: str) -> Iterator[str]:
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            entries = os.scandir(f"{top}/{folder}")
        except OSError:  # git cannot read it either
            continue
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != ".git":
                        folders.append(f"{folder}{entry.name}/")
                elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                    yield f"{folder}{entry.name}"
