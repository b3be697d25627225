"""What a look at the task source brings: facts about new, changed and missing tasks."""

import time

from crew.domain.kernel.fact import Fact
from crew.domain.tasks.task_outcomes import Intake, seen
from crew.domain.world import World
from crew.store.kept_values import keep_setting, setting
from crew.workplace import Workplace

TAKEN_IN = "taken_in"
"""The setting that names the state of the task source which the rows are up to."""


def arrivals(workplace: Workplace, world: World) -> list[Fact]:
    """The facts that bring the world up to what the source says now."""
    intake = Intake(target=workplace.target, at=time.time())
    return seen(world, workplace.snapshot().items, intake)


def is_taken_in(workplace: Workplace, stamp: object) -> bool:
    """Whether the rows are up to the source as this stamp names it; unknown is no."""
    return isinstance(stamp, str) and setting(workplace.db, TAKEN_IN) == _mark(workplace, stamp)


def keep_taken_in(workplace: Workplace, stamp: object) -> None:
    """For the next short command: it reads no tasks while the source stays as it is."""
    keep_setting(workplace.db, TAKEN_IN, _mark(workplace, stamp))


def _mark(workplace: Workplace, stamp: object) -> str:
    return f"{workplace.tasks_of} {stamp}"
