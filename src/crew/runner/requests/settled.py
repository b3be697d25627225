"""Conditions that a command waits for after its request: when what it asked for is done."""

from collections.abc import Callable

from crew.domain.world import World


def is_written(task: str) -> Callable[[World], bool]:
    """Whether the task's state is written to its source."""

    def settled(world: World) -> bool:
        row = world.tasks.get(task)
        return row is None or row.is_written

    return settled
