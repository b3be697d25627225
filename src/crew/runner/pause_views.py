"""Pauses as lines and as JSON: a provider at its rate limit, an agent kind with an outage."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from crew.domain.kernel.text import one_line
from crew.runner.views.row_views import moment

if TYPE_CHECKING:
    from crew.domain.rows.provider import Outage, Provider
    from crew.domain.rules import Rules
    from crew.domain.world import World
    from crew.store.quick_rows import ShownWorld
    from crew.workplace import Workplace

View = dict[str, Any]


def pause_views(world: ShownWorld) -> list[View]:
    """Every pause now: of agent kinds first, which need a person, then of providers."""
    broken = [_outage_view(one) for one in world.outages.values() if one.state == "open"]
    return [*broken, *(_limit_view(one) for one in world.providers.values() if _is_limited(one))]


def pause_of(world: ShownWorld, kind: str, rules: Rules) -> View | None:
    """The pause that keeps this agent kind from its next step; None if there is none."""
    outage = world.outages.get(kind)
    if outage is not None and outage.state == "open":
        return _outage_view(outage)
    provider = world.providers.get(rules.provider(kind))
    return _limit_view(provider) if provider is not None and _is_limited(provider) else None


def with_pauses(world: ShownWorld, agents: list[View], rules: Callable[[], Rules]) -> list[View]:
    """The documents of agents, each with the pause of its kind; `rules` is slow to make."""
    if not pause_views(world):
        return agents
    now = rules()
    return [{**agent, "paused": pause_of(world, agent["kind"], now)} for agent in agents]


def task_pause(workplace: Workplace, world: World, task: str) -> View | None:
    """The pause that an open task waits for: that of its worker, or in a review of a reviewer."""
    if not pause_views(world) or task not in world.tasks:
        return None
    from crew.domain.agents.agent_plan import kinds_awaited  # noqa: PLC0415 - only during a pause
    from crew.domain.lead_choice import LEADS  # noqa: PLC0415

    rules = workplace.rules
    kinds = kinds_awaited(world, world.tasks[task], leads=LEADS, rules=rules)
    found = (pause_of(world, kind, rules) for kind in kinds)
    return next((one for one in found if one is not None), None)


def pause_lines(world: ShownWorld) -> Iterator[str]:
    yield from map(pause_line, pause_views(world))


def pause_line(view: View) -> str:
    if view["kind"]:
        return f"agent kind {view['kind']} is paused: {view['reason']} ({view['remedy']})"
    return f"provider {view['provider']} is paused until {view['resumes_at']}: {view['reason']}"


def _is_limited(provider: Provider) -> bool:
    """Whether the limit lasts. After it, the provider stays paused until a step went well."""
    return provider.state == "paused" and provider.next_at > time.time()


def _limit_view(provider: Provider) -> View:
    return {
        "provider": provider.id,
        "kind": None,
        "reason": one_line(provider.reason, limit=300),
        "resumes_at": moment(provider.next_at),
        "remedy": None,
    }


def _outage_view(outage: Outage) -> View:
    return {
        "provider": None,
        "kind": outage.id,
        "reason": one_line(outage.reason, limit=300),
        "resumes_at": None,
        "remedy": outage.remedy,
    }
