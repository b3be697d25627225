"""Pauses: a rate limit pauses a provider, and an outage pauses an agent kind.

A rate limit ends at a time that the provider names. An outage ends when a person has fixed its
cause: a wrong login, a missing program, an empty account, an unknown model.
"""

import math
from collections.abc import Iterable

from crew.domain.kernel.fact import Fact
from crew.domain.rows.provider import (
    PROGRAM_GONE,
    Outage,
    OutageState,
    Provider,
    ProviderState,
)
from crew.domain.rows.step import LASTING, ErrorKind, StepError
from crew.domain.rules import Rules
from crew.domain.world import World, born, moved

PAUSING = LASTING | {ErrorKind.RATE_LIMIT}
"""Errors that pause a provider or an agent kind, and do not count as errors of a task."""


def paused(world: World, kind: str, error: StepError, rules: Rules, *, at: float) -> list[Fact]:
    """Pause the provider or the agent kind that this error concerns."""
    if error.kind in LASTING:
        return _broken(world, kind, error, at=at)
    return [_limited(world, rules.provider(kind), error, rules, at=at)]


def _limited(world: World, name: str, error: StepError, rules: Rules, *, at: float) -> Fact:
    """Pause this provider until its limit ends; a rate limit does not count as an error."""
    until = max(at, error.reset_at or at + rules.max_backoff_s)
    known = world.providers.get(name)
    if known is None:
        limit = Provider(id=name, state=ProviderState.PAUSED, next_at=until, reason=error.message)
        return born(limit, "rate_limited", at=at)
    return moved(
        known,
        "rate_limited",
        to=ProviderState.PAUSED,
        at=at,
        next_at=max(until, known.next_at),
        reason=error.message,
    )


def _broken(world: World, kind: str, error: StepError, *, at: float) -> list[Fact]:
    """Open the outage of this agent kind; steps that fail beside each other open it once."""
    remedy = error.remedy or f"fix the cause, then `crew retry {kind}`"
    return _opened(world, kind, cause=error.kind, reason=error.message, remedy=remedy, at=at)


def _opened(
    world: World, kind: str, *, cause: str, reason: str, remedy: str, at: float
) -> list[Fact]:
    known = world.outages.get(kind)
    if known is None:
        outage = Outage(id=kind, cause=cause, reason=reason, remedy=remedy, since=at)
        return [born(outage, "failed", at=at)]
    if known.is_open:
        return []
    return [
        moved(
            known,
            "failed",
            to=OutageState.OPEN,
            at=at,
            cause=cause,
            reason=reason,
            remedy=remedy,
            since=at,
        )
    ]


def programs_gone(world: World, kinds: Iterable[str], rules: Rules, *, at: float) -> list[Fact]:
    """Open an outage for each agent kind whose program has vanished while work waits for it."""
    return [
        fact
        for kind in dict.fromkeys(kinds)
        if (program := rules.missing.get(kind))
        for fact in _opened(
            world,
            kind,
            cause=PROGRAM_GONE,
            reason=f"{program} is not installed",
            remedy=f"install {program}: its tasks then continue by themselves",
            at=at,
        )
    ]


def programs_back(world: World, rules: Rules, *, at: float) -> list[Fact]:
    """End the outages of agent kinds whose program was gone and is installed again."""
    gone = (one for one in world.outages.values() if one.is_open and one.cause == PROGRAM_GONE)
    return [_over(one, "installed", at=at) for one in gone if rules.can_use(one.id)]


def served(world: World, kind: str, rules: Rules, *, at: float) -> list[Fact]:
    """End the pauses of this agent kind and of its provider after a step that ended well."""
    provider, outage = world.providers.get(rules.provider(kind)), world.outages.get(kind)
    facts = [] if outage is None or not outage.is_open else [_over(outage, "served", at=at)]
    if provider is None or provider.state != ProviderState.PAUSED or at < provider.next_at:
        return facts
    return [*facts, moved(provider, "served", to=ProviderState.OPEN, at=at, reason="")]


def retried(outage: Outage, *, at: float) -> Fact:
    """A person reports that the cause is fixed: the agent kind is tried again."""
    return _over(outage, "retried", at=at)


def all_retried(world: World, *, at: float) -> list[Fact]:
    """Try every agent kind again, as after a new start or a change of the configuration."""
    return [retried(outage, at=at) for outage in world.outages.values() if outage.is_open]


def _over(outage: Outage, trigger: str, *, at: float) -> Fact:
    return moved(outage, trigger, to=OutageState.OVER, at=at)


def opens_at(world: World, kind: str, rules: Rules) -> float | None:
    """When a step of this agent kind may start; None for now, infinity during an outage."""
    outage = world.outages.get(kind)
    if outage is not None and outage.is_open:
        return math.inf
    provider = world.providers.get(rules.provider(kind))
    return provider.opens_at if provider is not None else None


def all_open_at(world: World, kinds: Iterable[str], rules: Rules) -> float | None:
    """When steps of all these agent kinds may start; None for now."""
    times = (opens_at(world, kind, rules) for kind in kinds)
    return max((at for at in times if at is not None), default=None)
