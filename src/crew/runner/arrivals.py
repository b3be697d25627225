"""Reads the task source and returns facts about new, changed and missing tasks."""

import time

from crew.domain.kernel.fact import Fact
from crew.domain.tasks.task_outcomes import Intake, seen
from crew.domain.world import World
from crew.store.kept_values import keep_setting, setting
from crew.workplace import Workplace

TAKEN_IN = "taken_in"
"""The setting that names the last state of the task source that the rows include."""


def arrivals(workplace: Workplace, world: World) -> list[Fact]:
    """The facts that bring the world up to date with the task source."""
    intake = Intake(target=workplace.target, at=time.time())
    return seen(world, workplace.snapshot().items, intake)


def is_taken_in(workplace: Workplace, stamp: object) -> bool:
    """Whether the rows include the source's state with this stamp; False if there is no stamp."""
    return isinstance(stamp, str) and setting(workplace.db, TAKEN_IN) == _mark(workplace, stamp)


def keep_taken_in(workplace: Workplace, stamp: object) -> None:
    """Record the source's state, so that the next short command reads tasks only after a change."""
    keep_setting(workplace.db, TAKEN_IN, _mark(workplace, stamp))


def _mark(workplace: Workplace, stamp: object) -> str:
    return f"{workplace.tasks_of} {stamp}"
