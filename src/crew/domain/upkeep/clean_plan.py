"""What `crew clean` removes and keeps, and which tasks start again after it."""

from collections.abc import Iterable

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import TaskItem
from crew.domain.world import World

REOPENED = frozenset({TaskState.IN_PROGRESS, TaskState.ERROR, TaskState.DONE})
"""States of a task that returns to todo, since it loses its run and worktree."""


@frozen
class Inventory:
    """Everything that can be removed: worktrees by path, and merged branches (`contained`).

    `terminals` are ended first, so that their work is in the checkpoints of the worktrees.
    `tasks` return to todo; the work of `landed` ones is safe and only awaits its delivery.
    """

    terminals: tuple[str, ...]
    worktrees: tuple[str, ...]
    contained: tuple[str, ...]
    kept: tuple[str, ...]
    tasks: tuple[str, ...]
    landed: tuple[str, ...]


def reopened(items: Iterable[TaskItem], world: World) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tasks that return to todo, and those whose work has landed."""
    landed = {task.id for task in world.tasks.values() if task.awaits_delivery}
    open_ = [item.id for item in items if item.status in REOPENED and not item.corrupt]
    return (
        tuple(task for task in open_ if task not in landed),
        tuple(task for task in open_ if task in landed),
    )
