"""Repairs the links between a repository and its worktrees after one of them was copied or moved.

A worktree and the repository name each other by absolute paths. A folder counts as this
repository's own only if it names this repository, or the place from which this one came.
"""

import os
from contextlib import suppress
from pathlib import Path

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen
from crew.git.hardening import linked_git_dir
from crew.git.repository import Repository
from crew.git.task_repository.agent_refs import agent_git_of, is_folder, read_bytes
from crew.git.task_repository.lay_repository import alternates
from crew.git.task_repository.take_in import follow_agent
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.worktrees import remove_worktree
from crew.system.crash_points import effect
from crew.system.foreign_folders import write_below

_LARGEST_CONFIG = 1_000_000
_ALTERNATES = "objects/info/alternates"


@frozen
class Origin:
    """The git directory that this repository had; `is_copied` if that one still lives there."""

    git_dir: Path
    is_copied: bool


@frozen
class Folder:
    """A worktree of crew: its git dir, where it was, and where it is; None if it is not found."""

    git_dir: Path
    was: Path
    now: Path | None

    @property
    def is_temporary(self) -> bool:
        """Whether it is of a gate, a review or a member: what is in it is kept nowhere."""
        return self.was.name.startswith(".")


def origin_of(repo: Repository) -> Origin | None:
    """Where a repository without a record came from, as its worktrees show; None if from nowhere.

    A worktree that names another repository was not made by this one.
    """
    for path, git_dir in worktree_admin.crews_folders(repo):
        named = linked_git_dir(path / ".git")
        own = worktree_admin.named_by_worktree(git_dir)
        tail = own.relative_to(repo.common_dir)
        if named is None or _is_like(named, own) or named.parts[-len(tail.parts) :] != tail.parts:
            continue
        there = named.parents[len(tail.parts) - 1]
        return Origin(git_dir=there, is_copied=(there / "HEAD").is_file())
    return None


def found_folders(repo: Repository, origin: Origin, worktrees: Path) -> tuple[Folder, ...]:
    """Every worktree of crew, and where it is: in `worktrees`, or still in its old place."""
    return tuple(
        Folder(git_dir=git_dir, was=was, now=_place_now(repo, git_dir, was, origin, worktrees))
        for was, git_dir in worktree_admin.crews_folders(repo)
    )


def _place_now(
    repo: Repository, git_dir: Path, was: Path, origin: Origin, worktrees: Path
) -> Path | None:
    own = worktree_admin.named_by_worktree(git_dir)
    former = origin.git_dir / own.relative_to(repo.common_dir)
    for path in dict.fromkeys((worktrees / was.name, was)):
        named = linked_git_dir(path / ".git")
        if not is_folder(path):
            continue
        if named is not None and _is_like(named, own):
            return path
        if origin.is_copied and (named is None or _is_like(path, was)):
            continue
        if named is None or _is_like(named, former):
            return path
    return None


def _is_like(one: Path, other: Path) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def link_again(repo: Repository, folder: Folder, path: Path, origin: Origin) -> None:
    """Make a worktree at this path and the repository name each other. Safe to repeat.

    The folder comes first: from then on it counts as this repository's own.
    """
    git_dir = folder.git_dir
    if is_folder(path) and not is_folder(path / ".git"):
        worktree_admin.point(git_dir, path)
    if worktree_admin.is_own(git_dir):
        _link_repository(repo, git_dir, origin)
    worktree_admin.name_worktree(git_dir, path)


@effect("git.link_repository")
def _link_repository(repo: Repository, git_dir: Path, origin: Origin) -> None:
    """Renew the paths in a task's own repository, which an agent may have changed."""
    agent_git = agent_git_of(git_dir)
    write_below(agent_git, _ALTERNATES, alternates(repo))
    config = read_bytes(agent_git / "config", most=_LARGEST_CONFIG)
    old, new = (b'"' + os.fsencode(one) + b"/" for one in (origin.git_dir, repo.common_dir))
    if config is not None and old in config:
        write_below(agent_git, "config", config.replace(old, new))


def leave_behind(repo: Repository, folder: Folder) -> None:
    """Take what an agent committed, and forget a worktree that is another repository's."""
    if worktree_admin.is_own(folder.git_dir):
        write_below(agent_git_of(folder.git_dir), _ALTERNATES, alternates(repo))
        with suppress(CrewError):  # the last checkpoint is what the copy starts from
            follow_agent(repo, folder.git_dir)
    worktree_admin.forget(folder.git_dir)


def remove_temporary(repo: Repository, folder: Folder, origin: Origin) -> None:
    """Remove a worktree of a gate or a review that was moved: the next one makes it again."""
    if folder.now is None:
        worktree_admin.forget(folder.git_dir)
        return
    link_again(repo, folder, folder.now, origin)
    with suppress(CrewError):  # locked by a person
        remove_worktree(repo, folder.now)


def broken_links(repo: Repository) -> list[Folder]:
    """The worktrees in their places that name a repository or objects that are not there."""
    places = worktree_admin.crews_folders(repo)
    found = (Folder(git_dir=git_dir, was=path, now=path) for path, git_dir in places)
    return [one for one in found if is_folder(one.was) and _is_broken(one)]


def _is_broken(folder: Folder) -> bool:
    named = linked_git_dir(folder.was / ".git")
    if named is not None and not named.exists():
        return True
    if not worktree_admin.is_own(folder.git_dir):
        return False
    lines = read_bytes(agent_git_of(folder.git_dir) / _ALTERNATES, most=_LARGEST_CONFIG) or b""
    return any(
        one.startswith(b"/") and not Path(os.fsdecode(one)).is_dir() for one in lines.splitlines()
    )
