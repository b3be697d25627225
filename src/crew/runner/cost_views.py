"""Adds up the tokens and dollars of all agents: by task, agent, model or day."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from crew.domain.rows.agent import Manager
from crew.domain.rows.channel import Member
from crew.domain.rows.run import Run
from crew.domain.world import World
from crew.runner.views.row_views import moment, total

if TYPE_CHECKING:
    from crew.config.model import AgentsSettings

Spender = Run | Member | Manager
"""A row that uses tokens: a run, a member of a channel, or a manager."""

MANAGER = "manager"
"""The name of all managers in the groups: they belong to no task, and are no agents."""

WAYS = ("task", "agent", "day", "model")
"""What costs can be added up by."""


def spenders(world: World) -> list[Spender]:
    """All runs by their age, then the members of channels that crew has called, then managers."""
    runs = sorted(world.runs.values(), key=lambda run: (run.started_at, run.id))
    members = (one for one in world.members.values() if one.steps)
    return [*runs, *members, *world.managers.values()]


def cost_groups(
    world: World, by: str, *, agents: Mapping[str, str], settings: "AgentsSettings | None"
) -> dict[str, list[Spender]]:
    """The spenders by task, agent, day or model; `agents` is the last agent of each run.

    A finished run has no agent, so the facts tell which had it last.
    """
    keys: Mapping[str, Callable[[Spender], str]] = {
        "task": _task,
        "agent": lambda one: _agent(one, agents),
        "day": lambda one: day_of(world, one),
        "model": lambda one: _model(one, settings),
    }
    groups: dict[str, list[Spender]] = {}
    for one in spenders(world):
        groups.setdefault(keys[by](one), []).append(one)
    return groups


def cost_views(
    world: World, by: str, *, agents: Mapping[str, str], settings: "AgentsSettings | None"
) -> list[dict[str, Any]]:
    groups = cost_groups(world, by, agents=agents, settings=settings)
    return [{by: name, **total(group)} for name, group in groups.items()]


def day_of(world: World, one: Spender) -> str:
    """The day on which a run, a conversation or a manager began, in UTC."""
    began = world.channels[one.channel].opened_at if isinstance(one, Member) else one.started_at
    return str(moment(began))[:10]


def by_day(world: World, found: Iterable[Spender]) -> dict[str, list[Spender]]:
    days: dict[str, list[Spender]] = {}
    for one in found:
        days.setdefault(day_of(world, one), []).append(one)
    return days


def _task(one: Spender) -> str:
    match one:
        case Run():
            return one.task
        case Member():
            return f"channel {one.channel}"
        case Manager():
            return MANAGER


def _agent(one: Spender, agents: Mapping[str, str]) -> str:
    match one:
        case Run():
            return agents.get(one.id, "-")
        case Member():
            return one.name
        case Manager():
            return MANAGER


def _model(one: Spender, settings: "AgentsSettings | None") -> str:
    if not isinstance(one, Member) and one.model:
        return one.model
    kind = settings.by_name.get(one.agent_kind) if settings else None
    return (kind.default_model if kind else None) or f"{one.agent_kind} (its default)"
