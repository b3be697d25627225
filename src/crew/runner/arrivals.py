"""Reads the task source: facts about new, changed and missing tasks, and the world with them."""

import time

from crew.domain.kernel.fact import Fact
from crew.domain.tasks.task_outcomes import Intake, seen
from crew.domain.world import World, apply_all
from crew.runner.views.task_namespaces import snapshot_of
from crew.store.fact_log import load_world
from crew.store.kept_values import keep_setting, setting
from crew.workplace import Workplace

TAKEN_IN = "taken_in"
"""The setting that names the last state of the task source that the rows include."""


def arrivals(workplace: Workplace, world: World) -> list[Fact]:
    """The facts that bring the world up to date with the task source."""
    intake = Intake(target=workplace.target, at=time.time())
    return seen(world, workplace.snapshot().items, intake)


def with_source(workplace: Workplace, namespace: str | None = None) -> World:
    """The recorded world with the source's tasks as they are now, for a list; records nothing.

    Another namespace has no records: its world is what its files say.
    """
    if namespace in (None, workplace.settings.tasks.namespace):
        recorded = load_world(workplace.db)
        return apply_all(recorded, arrivals(workplace, recorded))
    intake = Intake(target=workplace.target, at=time.time())
    return apply_all(World(), seen(World(), snapshot_of(workplace, str(namespace)).items, intake))


def is_taken_in(workplace: Workplace, stamp: object) -> bool:
    """Whether the rows include the source's state with this stamp; False if there is no stamp."""
    return isinstance(stamp, str) and setting(workplace.db, TAKEN_IN) == _mark(workplace, stamp)


def keep_taken_in(workplace: Workplace, stamp: object) -> None:
    """Record the source's state, so that the next short command reads tasks only after a change."""
    keep_setting(workplace.db, TAKEN_IN, _mark(workplace, stamp))


def _mark(workplace: Workplace, stamp: object) -> str:
    return f"{workplace.tasks_of} {stamp}"
