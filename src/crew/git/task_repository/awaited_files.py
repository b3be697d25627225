"""Finds what git would wait for in a repository inside a worktree.

Git looks into each one that it meets. It follows links and `gitdir:` files there, so this module
does too. It opens only regular files.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from crew.git.task_repository.agent_refs import is_folder
from crew.system.foreign_files import NotBelieved, open_foreign

_READ = ("HEAD", "commondir", "config", "config.worktree", "packed-refs", "reftable/tables.list")
_LARGEST = 1_000_000
_MOST_REFS = 5  # git follows no more from one to the next


def awaited_in(worktree: str, folder: str) -> set[str]:
    """The paths to delete, so that git waits for nothing in the repository of this folder.

    A path is that of a pipe, a socket or a device, or of the link or file with which the agent's
    repository leads git to one elsewhere. It is always inside the repository's own `.git`.
    """
    dot_git = f"{folder}/.git"
    git_dir = _named_by(f"{worktree}/{dot_git}", "gitdir: ") or f"{worktree}/{dot_git}"
    common = _named_by(f"{git_dir}/commondir", "") or git_dir
    names = (*_READ, *_refs(git_dir, common))
    own = [name for name in names if _is_special(f"{git_dir}/{name}")]
    is_shared = common != git_dir and any(_is_special(f"{common}/{name}") for name in names)
    if not own and not is_shared:
        return set()
    if not is_folder(f"{worktree}/{dot_git}"):
        return {dot_git}
    found = {_first_link(worktree, dot_git, name) for name in own}
    return found | {f"{dot_git}/commondir"} if is_shared else found


def _named_by(file: str, prefix: str) -> str | None:
    """The folder that a small file names, as git reads it: up to a NUL, without line ends."""
    text = _text(file)
    if text is None or not text.startswith(prefix):
        return None
    named = text.removeprefix(prefix).rstrip("\r\n").partition("\0")[0]
    return str(Path(file).parent / named)


def _refs(git_dir: str, common: str) -> Iterator[str]:
    """The refs that lead from HEAD to its commit."""
    name = "HEAD"
    for _ in range(_MOST_REFS):
        name = _next_ref(f"{git_dir}/{name}") or _next_ref(f"{common}/{name}") or ""
        if not name.startswith("refs/") or {"", ".", ".."} & set(name.split("/")) or "\0" in name:
            return
        yield name


def _next_ref(file: str) -> str | None:
    if os.path.islink(file):  # noqa: PTH114 - text, as everywhere here
        target = os.readlink(file)  # noqa: PTH115
        if target.startswith("refs/"):
            return target
    text = _text(file) or ""
    return text.removeprefix("ref:").strip(" \t\r\n") if text.startswith("ref:") else None


def _text(file: str) -> str | None:
    """The text of a regular file, also behind links; None if there is none."""
    try:
        with open_foreign(Path(os.path.realpath(file))) as opened:
            return os.fsdecode(opened.read(_LARGEST))
    except (OSError, NotBelieved, ValueError):
        return None


def _is_special(file: str) -> bool:
    try:
        mode = os.stat(file).st_mode  # noqa: PTH116
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _first_link(worktree: str, dot_git: str, name: str) -> str:
    """The first link on the way to a file in a `.git` folder, or the file itself."""
    path = dot_git
    for part in name.split("/"):
        path = f"{path}/{part}"
        if os.path.islink(f"{worktree}/{path}"):  # noqa: PTH114
            break
    return path
