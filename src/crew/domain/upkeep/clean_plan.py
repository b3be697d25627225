"""What `crew clean` removes and keeps, and what becomes of the tasks that were under way."""

from collections.abc import Iterable

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import TaskItem
from crew.domain.world import World

REOPENED = frozenset({TaskState.IN_PROGRESS, TaskState.ERROR, TaskState.DONE})
"""Without its run and worktree such a task is to be done again."""


@frozen
class Inventory:
    """What is there to remove: worktrees by path, `contained` branches, which are merged.

    `tasks` are to be todo again; the work of `landed` ones is safe and only awaits its delivery.
    """

    worktrees: tuple[str, ...]
    contained: tuple[str, ...]
    kept: tuple[str, ...]
    tasks: tuple[str, ...]
    landed: tuple[str, ...]


def reopened(items: Iterable[TaskItem], world: World) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tasks that are to be done again, and those whose work has landed."""
    landed = {task.id for task in world.tasks.values() if task.awaits_delivery}
    open_ = [item.id for item in items if item.status in REOPENED and not item.corrupt]
    return (
        tuple(task for task in open_ if task not in landed),
        tuple(task for task in open_ if task in landed),
    )
