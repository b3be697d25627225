"""What ended tasks left behind, and which of it `crew prune` may remove."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import is_task_id, task_of_branch
from crew.domain.rows.task import FINISHED
from crew.domain.rows.task_item import TaskItem
from crew.domain.world import World


@frozen
class Worktree:
    """A worktree of a task that has ended."""

    task: str
    path: str
    is_dirty: bool


@frozen
class Branch:
    """A branch that crew made for a task that has ended."""

    task: str
    name: str
    head: str
    is_merged: bool


@frozen
class Remains:
    """What ended tasks left behind; `marks` are refs of branches that do not exist any more.

    `old_checkpoints` is the number of those that merged tasks no longer need. `is_postponed` means
    that a part of it waits until no runner is up.
    """

    worktrees: tuple[Worktree, ...] = ()
    branches: tuple[Branch, ...] = ()
    kept: tuple[Branch, ...] = ()
    marks: tuple[str, ...] = ()
    old_checkpoints: int = 0
    is_postponed: bool = False

    @property
    def is_nothing(self) -> bool:
        return not (self.worktrees or self.branches or self.marks or self.old_checkpoints)


def live_tasks(world: World, items: Iterable[TaskItem]) -> frozenset[str]:
    """Every task that is or may be under way; an unreadable one may be."""
    live = {agent.task for agent in world.agents.values() if agent.task}
    live |= {run.task for run in world.runs.values() if run.is_live}
    live |= {terminal.task for terminal in world.terminals.values() if terminal.has_process}
    live |= {row.id for row in world.tasks.values() if not row.gone and row.state not in FINISHED}
    return frozenset(live | {item.id for item in items if item.status not in FINISHED})


def is_over(branch: str, live: Container[str]) -> bool:
    """Whether this is the name of a branch of a task that has ended."""
    task = task_of_branch(branch)
    # `crew-1-gh-7` may also be the branch of a task that is itself called `1-gh-7`.
    return task is not None and task not in live and branch.removeprefix("crew-") not in live


def is_worktree_over(name: str, live: Container[str]) -> bool:
    """Whether a folder of this name among crew's worktrees belongs to a task that has ended."""
    return is_task_id(name) and name not in live


def sorted_out(
    worktrees: Iterable[Worktree],
    branches: Iterable[Branch],
    marks: Iterable[str],
    *,
    checked_out: Container[str],
    unmerged: bool,
) -> Remains:
    """What to remove and what to keep.

    A branch that a person has checked out stays; an unmerged one goes only on request.
    """
    found = tuple(branches)
    goes = tuple(
        one for one in found if (one.is_merged or unmerged) and one.name not in checked_out
    )
    return Remains(
        worktrees=tuple(worktrees),
        branches=goes,
        kept=tuple(one for one in found if one not in goes),
        marks=tuple(marks),
    )


def beside_a_runner(found: Remains, tasks: Mapping[str, object]) -> Remains:
    """What can be removed while a runner is up.

    The runner removes the worktrees of tasks that it knows; everything else waits until none is up.
    """
    unknown = unknown_worktrees(found, tasks)
    return replace(
        found,
        worktrees=tuple(one for one in found.worktrees if one not in unknown),
        branches=(),
        kept=(*found.kept, *found.branches),
        marks=(),
        is_postponed=bool(found.branches or found.marks or unknown),
    )


def unknown_worktrees(found: Remains, tasks: Mapping[str, object]) -> list[Worktree]:
    """Worktrees that no row names, as after `crew clean`."""
    return [one for one in found.worktrees if one.task not in tasks]


def still_over(shown: Remains, now: Remains) -> Remains:
    """What was shown and can still be removed, because the user confirmed only that."""
    paths = {one.path for one in shown.worktrees}
    return Remains(
        worktrees=tuple(one for one in now.worktrees if one.path in paths),
        branches=tuple(one for one in now.branches if one in shown.branches),
        kept=now.kept,
        marks=tuple(one for one in now.marks if one in shown.marks),
    )
