"""Finds the worktree of a person that has a branch checked out: crew must not move it there."""

import os
from collections.abc import Iterator
from pathlib import Path

from crew.domain.kernel.errors import Conflict
from crew.git.repository import Repository
from crew.git.task_repository.agent_refs import read_text

_LARGEST = 4096


def worktree_with(repo: Repository, ref: str) -> Path | None:
    """The main checkout or a linked worktree whose HEAD names this ref."""
    for git_dir in _git_dirs(repo):
        if read_text(f"{git_dir}/HEAD", most=_LARGEST) == f"ref: {ref}":
            if git_dir != repo.common_dir:
                return Path(read_text(git_dir / "gitdir", most=_LARGEST) or git_dir).parent
            if repo.root != repo.common_dir:
                return repo.root
    return None


def checked_out(branch: str, holder: Path) -> Conflict:
    return Conflict(
        f"the branch {branch} is checked out in {holder}",
        hint="switch that worktree to another branch first",
        code="branch_checked_out",
    )


def _git_dirs(repo: Repository) -> Iterator[Path]:
    yield repo.common_dir
    try:
        names = os.listdir(f"{repo.common_dir}/worktrees")  # noqa: PTH208 - names are enough
    except OSError:
        return
    yield from (repo.common_dir / "worktrees" / name for name in sorted(names))
