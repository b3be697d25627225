"""Finds what would make every task fail, before the first agent starts and costs money."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import Conflict, CrewError
from crew.git.git_command import ask
from crew.git.hardening import linked_git_dir
from crew.git.repository import Repository
from crew.git.task_repository.agent_refs import is_folder
from crew.git.worktrees import worktree_admin
from crew.runner.writer_lock import holding_the_lock
from crew.store.place_record import Standing, is_same
from crew.system.processes.allowed_environment import allowed_environment

if TYPE_CHECKING:
    from crew.workplace import Workplace

_ELSEWHERE = "set another folder: `crew config set worktree.dir DIR`"
_SET_IDENTITY = "git config user.name NAME && git config user.email ADDRESS"
_MOST = 1000


def check_ready(workplace: "Workplace") -> None:
    """Raise the first problem. A crew that was copied or moved settles first."""
    if workplace.standing != Standing.HOME:
        with holding_the_lock(workplace):
            pass
    for problem in problems(workplace):
        raise problem


def problems(workplace: "Workplace") -> Iterator[CrewError]:
    """What is wrong with the folder of the worktrees, and with the identity of commits."""
    if workplace.standing == Standing.HOME:  # else its own worktrees may look like another's
        yield from folder_problems(workplace.repo, workplace.worktrees)
    yield from identity_problems(workplace)


def folder_problems(repo: Repository, folder: Path) -> Iterator[CrewError]:
    """Why worktrees cannot be made in this folder, which may not exist yet."""
    above = next(one for one in (folder, *folder.parents) if os.path.lexists(one))
    if not above.is_dir():
        yield _unusable(folder, f"{above} is not a folder")
    elif not os.access(above, os.W_OK | os.X_OK):
        yield _unusable(folder, f"this user cannot write to {above}")
    elif above == folder and (taken := _taken_by_others(repo, folder)):
        yield _unusable(folder, taken)


def _unusable(folder: Path, reason: str) -> Conflict:
    message = f"worktrees cannot be made in {folder}: {reason}"
    return Conflict(message, hint=_ELSEWHERE, code="no_place_for_worktrees")


def _taken_by_others(repo: Repository, folder: Path) -> str:
    """Why the folder is in use by others; nothing if only this crew's worktrees are in the way.

    Crew deletes what it left there: in the folder of another crew that would be the other's.
    """
    own = {path for path, _ in worktree_admin.crews_folders(repo)}
    with os.scandir(folder) as entries:
        names = [entry.name for entry, _ in zip(entries, range(_MOST), strict=False)]
    for path in (folder / name for name in sorted(names)):
        git_dir = _named_by(path)
        if path in own or (git_dir is not None and is_same(git_dir, repo.common_dir)):
            continue
        if git_dir is not None and git_dir.is_dir():
            return f"{path} is a worktree of {git_dir}"
        if path.name.isdigit() and not _is_empty(path):
            return f"{path} is not a worktree that crew made"
    return ""


def _named_by(path: Path) -> Path | None:
    """The main repository that a worktree of a crew names, whether it is there or not."""
    named = linked_git_dir(path / ".git")
    is_of_crew = named is not None and named.parts[-4:-2] == ("crew", "folders")
    return named.parents[3] if named is not None and is_of_crew else None


def _is_empty(path: Path) -> bool:
    return is_folder(path) and not any(path.iterdir())


def identity_problems(workplace: "Workplace") -> Iterator[CrewError]:
    """Why agents could not commit: git refuses a commit that it cannot say who made."""
    agents = workplace.settings.agents
    worker = agents.by_name.get(agents.worker_default)
    if not can_commit(workplace.repo, worker.env if worker else {}):
        yield Conflict(
            "git does not know who makes a commit here, so no agent can commit",
            hint=f"{_SET_IDENTITY} (with --global for all your repositories)",
            code="no_identity",
        )


def can_commit(repo: Repository, extra: Mapping[str, str]) -> bool:
    """Whether git finds a name and an address, in the environment that an agent gets."""
    env = {**allowed_environment(os.environ), **extra}
    own = {name: value for name, value in env.items() if name.startswith("GIT_")}
    who = ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT")
    return all(ask(repo.common_dir, "var", one, env=own).code == 0 for one in who)
