"""Rate limits of providers: pause all agents of a provider, and open it again."""

from crew.domain.kernel.fact import Fact
from crew.domain.rows.provider import Provider, ProviderState
from crew.domain.rows.step import StepError
from crew.domain.rules import Rules
from crew.domain.world import World, born, moved


def limited(world: World, name: str, error: StepError, rules: Rules, *, at: float) -> Fact:
    """Pause this provider until its limit ends; a rate limit does not count as an error."""
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
    """Open a paused provider again after a step that ended well."""
    provider = world.providers.get(name)
    if provider is None or provider.state != ProviderState.PAUSED or at < provider.next_at:
        return []
    return [moved(provider, "served", to=ProviderState.OPEN, at=at, reason="")]
