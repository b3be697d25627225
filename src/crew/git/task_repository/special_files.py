"""Finds pipes, sockets and devices where git expects a file: git would wait for them, or fail.

An agent's program can leave them in its worktree. They have no content, so crew deletes them once
no process of the task runs. Other special files are of no interest to git and stay.
"""

import os
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.git_command import ask
from crew.git.task_repository.awaited_files import awaited_in
from crew.system.crash_points import effect

_READ_BY_GIT = frozenset({".gitignore", ".gitattributes", ".gitmodules", ".mailmap"})


@frozen
class Walked:
    """What a worktree contains that git cannot read as a file or a folder of its own.

    `special`: pipes, sockets and devices. `repositories`: the folders that contain a `.git`.
    `closed`: the folders whose mode forbids to look into them.
    """

    special: tuple[str, ...]
    repositories: tuple[str, ...]
    closed: tuple[str, ...]


def drop_special_files(worktree: Path, git_dir: Path) -> bool:
    """Delete them, and return whether there was one. Only while no process of the task runs."""
    found = special_files(walk(worktree), worktree, git_dir)
    for name in found:
        _note(worktree / name)
        _drop(worktree / name)
    if found:
        drop_special_files(worktree, git_dir)  # without these, git may read others
    return bool(found)


def _note(file: Path) -> None:
    import logging  # noqa: PLC0415 - slow to load, and there is seldom one

    log = logging.getLogger(__name__)
    log.info("%s was no file: crew deleted it, since git would wait for it", file)


@effect("git.drop_special_file")
def _drop(file: Path) -> None:
    file.unlink(missing_ok=True)


def special_files(walked: Walked, worktree: Path, git_dir: Path) -> tuple[str, ...]:
    """The paths for which git would wait.

    They are special files with a name that git reads, in the place of a tracked file, or in a
    repository inside.
    """
    inner = (awaited_in(str(worktree), folder) for folder in walked.repositories)
    read = {name for found in inner for name in found}
    read |= {name for name in walked.special if name.rpartition("/")[2] in _READ_BY_GIT}
    if not walked.special:
        return tuple(sorted(read))
    args = ("--literal-pathspecs", "ls-files", "-z", "--cached", "--", *walked.special)
    env = {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(worktree)}
    listed = ask(worktree, *args, env=env)
    return tuple(sorted(read | ({*os.fsdecode(listed.out).split("\0")} & {*walked.special})))


def walk(worktree: Path) -> Walked:
    """Look at each entry once, outside of `.git` folders."""
    special, repositories, closed = list[str](), list[str](), list[str]()
    top, folders = str(worktree), [""]
    while folders:
        folder = folders.pop()
        try:
            entries = os.scandir(f"{top}/{folder}.")  # the dot: may one look at its entries, too
        except OSError:  # git cannot read it either
            closed.append(folder)
            continue
        with entries:
            for entry in entries:
                if entry.name == ".git":
                    repositories += [folder.removesuffix("/")] if folder else []
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(f"{folder}{entry.name}/")
                elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                    special.append(f"{folder}{entry.name}")
    return Walked(special=tuple(special), repositories=tuple(repositories), closed=tuple(closed))
