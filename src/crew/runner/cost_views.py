"""Adds up the tokens and dollars of runs and channels: by task, agent, model or day."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from crew.domain.rows.channel import Member
from crew.domain.rows.run import Run
from crew.domain.world import World
from crew.runner.views.row_views import moment, total

if TYPE_CHECKING:
    from crew.config.model import AgentsSettings

Spender = Run | Member
"""A row that uses tokens: a run, or a member of a channel."""

WAYS = ("task", "agent", "day", "model")
"""What costs can be added up by."""


def spenders(world: World) -> list[Spender]:
    """All runs by their age, then the members of channels that crew has called."""
    runs = sorted(world.runs.values(), key=lambda run: (run.started_at, run.id))
    return [*runs, *(one for one in world.members.values() if one.steps)]


def cost_groups(
    world: World, by: str, *, agents: Mapping[str, str], settings: "AgentsSettings | None"
) -> dict[str, list[Spender]]:
    """The spenders by task, agent, day or model; `agents` is the last agent of each run.

    A finished run has no agent, so the facts tell which had it last.
    """
    keys: Mapping[str, Callable[[Spender], str]] = {
        "task": _task,
        "agent": lambda one: one.name if isinstance(one, Member) else agents.get(one.id, "-"),
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
    """The day on which a run or a conversation began, in UTC."""
    began = one.started_at if isinstance(one, Run) else world.channels[one.channel].opened_at
    return str(moment(began))[:10]


def by_day(world: World, found: Iterable[Spender]) -> dict[str, list[Spender]]:
    days: dict[str, list[Spender]] = {}
    for one in found:
        days.setdefault(day_of(world, one), []).append(one)
    return days


def _task(one: Spender) -> str:
    return one.task if isinstance(one, Run) else f"channel {one.channel}"


def _model(one: Spender, settings: "AgentsSettings | None") -> str:
    if isinstance(one, Run) and one.model:
        return one.model
    kind = settings.by_name.get(one.agent_kind) if settings else None
    return (kind.default_model if kind else None) or f"{one.agent_kind} (its default)"
