"""Reads the refs of a task's own repository as text: an agent may have written anything there.

Git itself never runs on that repository for crew. A HEAD or ref that is not plain text of the
expected form counts as unreadable.
"""

import itertools
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.system.foreign_files import NotBelieved, read_foreign

SHOWN = "crew-shown-refs"
"""In crew's git dir of a folder: the person's refs that its repository had from the start."""
NEWEST = "crew-newest-ref"
"""In crew's git dir of a folder: the target branch, as crew showed it there last."""
PACKED = "packed-refs"
"""The file in which git lists refs that have no file of their own."""
MOST_REFS = 5000
_LONGEST_REF = 4096
LARGEST_LIST = 20_000_000
"""Bytes of a list of refs: more than two hundred thousand. A longer one counts as unreadable."""
_MANY = 1_000_000
_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_BRANCH = re.compile(r"refs/heads/(?!.*(//|/\.|\.\.|@\{|\.lock(/|$)))[^\x00-\x20~^:?*\[\\\x7f]+")
_ELSEWHERE = "refs/remotes/"


@frozen
class AgentHead:
    """Where the agent is: a commit, and its branch. Before a branch's first commit: no commit."""

    commit: str | None
    branch: str | None


@lru_cache(maxsize=1000)
def agent_git_of(crew_git: Path) -> Path:
    """The git dir of the task's own repository, next to crew's for the same folder."""
    return crew_git / "repository"


def read_head(agent_git: Path) -> AgentHead | None:
    """The HEAD of a task's own repository; None if it cannot be trusted to be one."""
    if not is_folder(agent_git):
        return None
    text = read_text(f"{agent_git}/HEAD", most=_LONGEST_REF)
    if text is None:
        return None
    if _ID.fullmatch(text):
        return AgentHead(commit=text, branch=None)
    ref = text.removeprefix("ref: ").strip()
    if not text.startswith("ref: ") or not _BRANCH.fullmatch(ref):
        return None
    loose = f"{agent_git}/{ref}"
    commit = read_text(loose, most=_LONGEST_REF)
    if commit is None and not os.path.lexists(loose):
        commit = None if has_long_list(agent_git) else dict(_packed(agent_git)).get(ref, "")
    if commit is None or (commit and not _ID.fullmatch(commit)):
        return None
    return AgentHead(commit=commit or None, branch=ref.removeprefix("refs/heads/"))


def has_long_list(agent_git: Path) -> bool:
    """Whether its list of refs is too long to be read, so that commits may be unseen."""
    try:
        return os.lstat(f"{agent_git}/{PACKED}").st_size > LARGEST_LIST
    except OSError:
        return False


def main_repository_of(folder: Path) -> Path | None:
    """The git dir of the main repository, if this folder is a worktree with its own repository.

    The folder names it, and the main repository must name the folder too.
    """
    pointer = read_text(folder / ".git", most=_LONGEST_REF) or ""
    crew_git = (folder / pointer.removeprefix("gitdir: ")).parent
    named = read_text(crew_git / "gitdir", most=_LONGEST_REF) if pointer else None
    if named is None or Path(named).parent.resolve() != folder.resolve():
        return None
    return crew_git.parents[2] if crew_git.parts[-3:-1] == ("crew", "folders") else None


def other_tips(crew_git: Path) -> dict[str, str]:
    """The branches, tags, stash and other refs that the agent made, at most a few thousand."""
    agent_git = agent_git_of(crew_git)
    shown = {*_packed(crew_git, SHOWN), *_packed(crew_git, NEWEST)}
    found = dict[str, str]()
    for ref, at in (*_packed(agent_git), *itertools.islice(_loose(agent_git), MOST_REFS)):
        if (ref, at) in shown:
            found.pop(ref, None)
        else:
            found[ref] = at
    return {ref: at for ref, at in found.items() if not ref.startswith(_ELSEWHERE)}


def all_refs(git_dir: Path) -> dict[str, str]:
    """Every ref of a repository that an agent made, at most a few thousand."""
    found = (*_packed(git_dir), *itertools.islice(_loose(git_dir), MOST_REFS))
    return dict(found[-MOST_REFS:])


def branch_tip(agent_git: Path, branch: str) -> str | None:
    """The commit of a branch of the agent, as its repository names it."""
    ref = f"refs/heads/{branch}"
    loose = read_text(f"{agent_git}/{ref}", most=_LONGEST_REF) or dict(_packed(agent_git)).get(
        ref, ""
    )
    return loose if _ID.fullmatch(loose) else None


def locks_of_agent(agent_git: Path) -> list[Path]:
    """The locks in a task's own repository."""
    if not is_folder(agent_git):
        return []
    top = (f"{agent_git}/{name}" for name in os.listdir(agent_git))  # noqa: PTH208
    below = _files_below(f"{agent_git}/refs")
    return [Path(file) for file in (*top, *below) if file.endswith(".lock")]


def read_text(file: Path | str, *, most: int) -> str | None:
    """The stripped text of a regular file; None for a link, a pipe, a large or a missing file."""
    content = read_bytes(file, most=most)
    return None if content is None else os.fsdecode(content).strip()


def read_bytes(file: Path | str, *, most: int) -> bytes | None:
    """The content of a regular file; None for a link, a pipe, a large or a missing file."""
    try:
        return read_foreign(file, max_bytes=most)
    except (OSError, NotBelieved):
        return None


def is_folder(path: Path | str) -> bool:
    """Whether it is a real folder, not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, if it exists."""
    if is_folder(path):
        from crew.system.deep_folders import delete_folder  # noqa: PLC0415 - `ps` reads refs too

        delete_folder(path)
    else:
        path.unlink(missing_ok=True)


def _packed(folder: Path, name: str = PACKED) -> tuple[tuple[str, str], ...]:
    text = read_text(f"{folder}/{name}", most=LARGEST_LIST) or ""
    return _few(text) if len(text) < _MANY else _many(text)


def _parsed(text: str) -> tuple[tuple[str, str], ...]:
    lines = (line.partition(" ") for line in text.splitlines())
    return tuple((ref, at) for at, _, ref in lines if _ID.fullmatch(at) and ref.startswith("refs/"))


# Read once: all tasks show the same thousands of refs, and each step looks at them. Long lists need
# much memory, and an agent can write a new one for each step.
_few, _many = lru_cache(maxsize=16)(_parsed), lru_cache(maxsize=3)(_parsed)


def _loose(agent_git: Path) -> Iterator[tuple[str, str]]:
    for ref in loose_refs(agent_git):
        at = read_text(f"{agent_git}/{ref}", most=_LONGEST_REF)
        if at is not None and _ID.fullmatch(at):
            yield ref, at


def loose_refs(git_dir: Path) -> Iterator[str]:
    """The names of the refs of a repository that have a file of their own."""
    yield from (file.removeprefix(f"{git_dir}/") for file in _files_below(f"{git_dir}/refs"))


def _files_below(top: str) -> Iterator[str]:
    """All that is no folder there, as text: twice for each step, and paths are slow."""
    folders = [top] if is_folder(top) else []
    while folders:
        folder = folders.pop()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    yield entry.path
