"""Worktrees of crew that belong to no task any more."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from crew.git.checkpoints.checkpoints import take_checkpoint
from crew.git.worktrees.worktrees import remove_worktree, worktree_paths

if TYPE_CHECKING:
    from crew.workplace import Workplace


def orphans(workplace: "Workplace") -> list[Path]:
    """Gates have worktrees of their own, which are used again and belong to nobody."""
    known = {item.id for item in workplace.snapshot().items}
    return [
        path
        for path in worktree_paths(workplace.repo)
        if path.is_relative_to(workplace.worktrees)
        and path.name not in known
        and not path.name.startswith(".")
    ]


def remove_orphan(workplace: "Workplace", path: Path) -> None:
    take_checkpoint(
        workplace.repo,
        path,
        path.name,
        label="belonged to no task",
        at=time.time(),
        with_ignored=True,
    )
    remove_worktree(workplace.repo, path)
