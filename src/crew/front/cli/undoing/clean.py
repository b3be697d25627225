"""`crew clean`: all worktrees and runtime state go; tasks, config and checkpoints stay."""

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import landed_ref, task_of_branch
from crew.domain.rows.task import TaskState
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import confirm, yes_option
from crew.git.checkpoints.checkpoints import take_checkpoint
from crew.git.git_command import git
from crew.git.merges.merges import contains
from crew.git.repository import commit_of
from crew.git.worktrees.worktrees import delete_branch, remove_worktree, worktree_paths
from crew.runner.writer_lock import holding_the_lock
from crew.store.fact_log import load_world
from crew.store.runner_lock import LockHeld, find_runner
from crew.system.crash_points import effect
from crew.workplace import make_workplace

if TYPE_CHECKING:
    from crew.workplace import Workplace

REOPENED = frozenset({TaskState.IN_PROGRESS, TaskState.ERROR, TaskState.DONE})
"""Without its run and worktree such a task is to be done again."""


@frozen
class Inventory:
    """What is there to remove."""

    worktrees: dict[Path, str]
    contained: tuple[str, ...]
    kept: tuple[str, ...]
    tasks: tuple[str, ...]
    landed: tuple[str, ...]


@command("clean", example="crew clean\ncrew clean --yes")
@yes_option
@pass_call
def clean(call: Call, *, yes: bool) -> None:
    """Remove all worktrees and state; tasks stay.

    A checkpoint keeps every worktree first. Merged branches are deleted; the others stay and are
    listed. Tasks in progress become todo. Refused while a runner is up.
    """
    workplace = call.workplace()
    if (holder := find_runner(workplace.lock_file)) is not None:
        raise LockHeld(holder)
    found = inventory(workplace)
    for words in _told(found):
        narrate(call, words)
    if not confirm("Remove all this, with all agents, runs, events and logs?", yes=yes):
        narrate(call, "nothing was removed")
        return
    with holding_the_lock(workplace):
        _clean(workplace, inventory(workplace))
    _tell(call, found)


def inventory(workplace: "Workplace") -> Inventory:
    paths = {
        path: branch
        for path, branch in worktree_paths(workplace.repo).items()
        if path != workplace.root and path.is_relative_to(workplace.worktrees)
    }
    branches = _crew_branches(workplace)
    kept = tuple(branch for branch in branches if not _is_contained(workplace, branch))
    landed = _landed_tasks(workplace)
    tasks = [i.id for i in workplace.snapshot().items if i.status in REOPENED and not i.corrupt]
    return Inventory(
        worktrees=paths,
        contained=tuple(branch for branch in branches if branch not in kept),
        kept=kept,
        tasks=tuple(task for task in tasks if task not in landed),
        landed=tuple(task for task in tasks if task in landed),
    )


def _landed_tasks(workplace: "Workplace") -> frozenset[str]:
    """Tasks whose work is safe in what landed, and that only wait for its delivery."""
    tasks = load_world(workplace.db).tasks.values()
    return frozenset(task.id for task in tasks if task.awaits_delivery)


def _crew_branches(workplace: "Workplace") -> list[str]:
    listed = git(
        workplace.repo.common_dir, "for-each-ref", "--format=%(refname)", "refs/heads/crew-*"
    )
    names = [ref.removeprefix("refs/heads/") for ref in listed.splitlines()]
    return [name for name in names if task_of_branch(name) is not None]


def _is_contained(workplace: "Workplace", branch: str) -> bool:
    """Whether all of it is in the target, or in what landed and still has to be delivered."""
    repo, target = workplace.repo, workplace.target
    head = commit_of(repo, f"refs/heads/{branch}")
    holders = (commit_of(repo, landed_ref(target)), commit_of(repo, f"refs/heads/{target}"))
    return head is not None and any(
        holder is not None and contains(repo, ancestor=head, descendant=holder)
        for holder in holders
    )


def _told(found: Inventory) -> list[str]:
    words = [f"removes the worktree {path}, after a checkpoint" for path in found.worktrees]
    words += [f"removes the branch {branch}, which is merged" for branch in found.contained]
    words += [f"keeps the branch {branch}, which is not merged" for branch in found.kept]
    words += [f"sets task {task} back to todo" for task in found.tasks]
    return words + [
        f"sets task {task} to merged: its work landed, and the next `crew run` delivers it"
        for task in found.landed
    ]


def _clean(workplace: "Workplace", found: Inventory) -> None:
    """Each part may be repeated; the state goes last, so that a repeat finds what is left."""
    for path in found.worktrees:
        _remove(workplace, path)
    checked_out = set(worktree_paths(workplace.repo).values())
    for branch in found.contained:
        head = commit_of(workplace.repo, f"refs/heads/{branch}")
        if head is not None and branch not in checked_out:
            delete_branch(workplace.repo, branch, expected=head)
    for task in found.tasks:
        workplace.source.set_status(task, TaskState.TODO, at=time.time())
    for task in found.landed:
        workplace.source.set_status(task, TaskState.MERGED, at=time.time())
    workplace.db.close()
    _delete_state(workplace.folder)
    make_workplace(workplace.root)


def _remove(workplace: "Workplace", path: Path) -> None:
    if not path.name.startswith("."):  # a gate's worktree holds nothing that is not committed
        take_checkpoint(
            workplace.repo,
            path,
            path.name,
            label="before clean",
            at=time.time(),
            with_ignored=True,
        )
    remove_worktree(workplace.repo, path)


@effect("front.delete_state")
def _delete_state(folder: Path) -> None:
    for name in ("logs", "sessions", "scripts"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("state.json", "crew.db", "crew.db-wal", "crew.db-shm"):
        (folder / name).unlink(missing_ok=True)


def _tell(call: Call, found: Inventory) -> None:
    if call.json:
        print_json(
            {
                "worktrees": [str(path) for path in found.worktrees],
                "branches": list(found.contained),
                "kept_branches": list(found.kept),
                "tasks": list(found.tasks),
            }
        )
        return
    narrate(call, "all clean; `crew checkpoints TASK` lists its checkpoints")
