"""Rate limits of providers: all agents of one wait together, and it opens again."""

from crew.domain.kernel.fact import Fact
from crew.domain.rows.provider import Provider, ProviderState
from crew.domain.rows.step import StepError
from crew.domain.rules import Rules
from crew.domain.world import World, born, moved


def limited(world: World, name: str, error: StepError, rules: Rules, *, at: float) -> Fact:
    """Not an error: everything of this provider waits, and all others go on."""
    until = max(at, error.reset_at or at + rules.max_backoff_s)
    known = world.providers.get(name)
    if known is None:
        paused = Provider(id=name, state=ProviderState.PAUSED, next_at=until, reason=error.message)
        return born(paused, "rate_limited", at=at)
    return moved(
        known,
        "rate_limited",
        to=ProviderState.PAUSED,
        at=at,
        next_at=max(until, known.next_at),
        reason=error.message,
    )


def served(world: World, name: str, *, at: float) -> list[Fact]:
    """A step of this provider went well: if it was paused, it is open again."""
    provider = world.providers.get(name)
    if provider is None or provider.state != ProviderState.PAUSED or at < provider.next_at:
        return []
    return [moved(provider, "served", to=ProviderState.OPEN, at=at, reason="")]
