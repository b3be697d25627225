"""Removes a worktree after a checkpoint of its content, ignored files included."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crew.git.repository import Repository


def keep_and_remove(repo: "Repository", path: Path, *, label: str) -> None:
    """Keep and remove a worktree, which has its task's name; do nothing if it is gone."""
    from crew.git.checkpoints.checkpoints import take_checkpoint  # noqa: PLC0415 - slow to load
    from crew.git.worktrees.worktrees import remove_worktree  # noqa: PLC0415

    take_checkpoint(repo, path, path.name, label=label, at=time.time(), with_ignored=True)
    remove_worktree(repo, path)
