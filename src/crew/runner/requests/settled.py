"""When what was asked for is done: conditions that a command waits for."""

from collections.abc import Callable

from crew.domain.world import World


def is_written(task: str) -> Callable[[World], bool]:
    """The source has been told."""

    def settled(world: World) -> bool:
        row = world.tasks.get(task)
        return row is None or row.is_written

    return settled
