"""Removes a worktree after a checkpoint of its content, ignored files included."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crew.workplace import Workplace


def keep_and_remove(workplace: "Workplace", path: Path, *, label: str) -> None:
    """Keep and remove a worktree, which has its task's name; do nothing if it is gone.

    A terminal that is still open there ends first, so that nothing is written after the checkpoint.
    """
    from crew.git.checkpoints.checkpoints import take_checkpoint  # noqa: PLC0415 - slow to load
    from crew.git.worktrees.worktrees import remove_worktree  # noqa: PLC0415
    from crew.runner.upkeep.live_terminals import close_terminal_of  # noqa: PLC0415

    repo = workplace.repo
    close_terminal_of(workplace, path.name)
    take_checkpoint(repo, path, path.name, label=label, at=time.time(), with_ignored=True)
    remove_worktree(repo, path)
