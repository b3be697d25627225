"""Resolves the agent or task that a person names; a task id has several spellings."""

from collections.abc import Container
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import CrewError, NotFound
from crew.domain.world import World
from crew.store.fact_log import facts_after, load_world

if TYPE_CHECKING:
    from crew.workplace import Workplace


def task_of(workplace: "Workplace", named: str, world: World | None = None) -> str:
    """The id of a task; an agent's name means its current or last task."""
    world = world or load_world(workplace.db)
    if named in world.crew:
        found = world.agents[named].task or _last_task(workplace, named)
        if found is None:
            raise NotFound(
                f"agent {named} has not had a task yet", hint=f"crew assign {named} TASK"
            )
        return found
    try:
        return workplace.source.resolve(named)
    except CrewError as error:
        if world.crew and not named.lstrip("#").isdigit():
            error.hint = f"agents: {', '.join(world.crew)}; {error.hint}"
        raise


def retried(workplace: "Workplace", named: str) -> str:
    """The name of an agent or of an agent kind unchanged, or the full id of a task."""
    world = load_world(workplace.db)
    is_name = named in world.crew or named in world.outages or named in _kinds(workplace)
    return named if is_name else workplace.source.resolve(named)


def _kinds(workplace: "Workplace") -> Container[str]:
    return workplace.settings.agents.by_name


def _last_task(workplace: "Workplace", agent: str) -> str | None:
    facts = facts_after(workplace.db, subject=f"agent:{agent}")
    return next((str(f.changes["task"]) for _, f in reversed(facts) if f.changes.get("task")), None)
