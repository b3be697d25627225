"""`crew clean`: ends all terminals, and removes all worktrees and runtime state.

Tasks, config and checkpoints stay. It records no facts, since it deletes them: their log is a part
of the state. The tasks, which their source keeps, and the checkpoints in git show what it did.
"""

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from crew.domain.kernel.names import made_ref
from crew.domain.rows.task import TaskState
from crew.domain.upkeep.clean_plan import Inventory, reopened
from crew.git.repository import commit_of, refs_like
from crew.git.worktrees.worktree_list import delete_branch, worktree_paths
from crew.git.worktrees.worktrees import remove_worktree
from crew.runner.upkeep.keep_and_remove import keep_and_remove
from crew.runner.upkeep.live_terminals import close_all_terminals, live_terminals
from crew.runner.upkeep.prune_remains import is_contained
from crew.runner.writer_lock import holding_the_lock
from crew.store.fact_log import load_world
from crew.store.runner_lock import LockHeld, find_runner
from crew.system.crash_points import effect
from crew.workplace import make_workplace

if TYPE_CHECKING:
    from crew.workplace import Workplace

LABEL = "before clean"


def take_inventory(workplace: "Workplace") -> Inventory:
    """List what would be removed; raises `LockHeld` while a runner is up."""
    if (holder := find_runner(workplace.lock_file)) is not None:
        raise LockHeld(holder)
    return _inventory(workplace)


def remove_state(workplace: "Workplace") -> None:
    """Remove what an inventory lists, and the state; the workplace cannot be used afterwards."""
    with holding_the_lock(workplace):
        _clean(workplace, _inventory(workplace))


def _inventory(workplace: "Workplace") -> Inventory:
    paths = [
        path
        for path in worktree_paths(workplace.repo)
        if path != workplace.root and path.is_relative_to(workplace.worktrees)
    ]
    heads = _crew_branches(workplace)
    contained = tuple(
        name for name, head in heads.items() if is_contained(workplace, head, workplace.target)
    )
    tasks, landed = reopened(workplace.kept_source.scan().items, load_world(workplace.db))
    return Inventory(
        terminals=tuple(session.name for session in live_terminals(workplace)),
        worktrees=tuple(map(str, paths)),
        contained=contained,
        kept=tuple(name for name in heads if name not in contained),
        tasks=tasks,
        landed=landed,
    )


def _crew_branches(workplace: "Workplace") -> dict[str, str]:
    """The branches that crew made, not a person's branch with such a name."""
    found = refs_like(workplace.repo, "refs/heads/crew-*")
    marked = refs_like(workplace.repo, made_ref("crew-*"))
    named = {ref.removeprefix("refs/heads/"): head for ref, head in found.items()}
    return {name: head for name, head in named.items() if made_ref(name) in marked}


def _clean(workplace: "Workplace", found: Inventory) -> None:
    """Each part may be repeated; the state is removed last, so that a repeat finds the rest.

    The terminals end first: what their programs write until then is in the checkpoints.
    """
    close_all_terminals(workplace)
    for path in map(Path, found.worktrees):
        if path.name.startswith("."):  # a gate's worktree contains only committed work
            remove_worktree(workplace.repo, path)
        else:
            keep_and_remove(workplace, path, label=LABEL)
    _delete_branches(workplace, found.contained)
    source = workplace.kept_source
    for task in found.tasks:
        source.set_status(task, TaskState.TODO, at=time.time())
    for task in found.landed:
        source.set_status(task, TaskState.MERGED, at=time.time())
    workplace.db.close()
    _delete_state(workplace.folder)
    make_workplace(workplace.root).db.close()


def _delete_branches(workplace: "Workplace", names: tuple[str, ...]) -> None:
    checked_out = set(worktree_paths(workplace.repo).values())
    for name in names:
        head = commit_of(workplace.repo, f"refs/heads/{name}")
        if head is not None and name not in checked_out:
            delete_branch(workplace.repo, name, expected=head)


@effect("runner.delete_state")
def _delete_state(folder: Path) -> None:
    for name in ("logs", "sessions", "scripts"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("state.json", "crew.db", "crew.db-wal", "crew.db-shm"):
        (folder / name).unlink(missing_ok=True)
