"""The row of a provider of models: paused as a whole when it reports a rate limit."""

from enum import StrEnum
from typing import ClassVar

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.machine import Machine, Move


class ProviderState(StrEnum):
    OPEN = "open"
    PAUSED = "paused"


PROVIDER = Machine(
    name="provider",
    first=ProviderState.OPEN,
    moves=(
        Move(source="open", target="paused", trigger="rate_limited", meaning="a limit is reached"),
        Move(source="paused", target="paused", trigger="rate_limited", meaning="and again"),
        Move(source="paused", target="open", trigger="served", meaning="a step went well"),
    ),
)


@frozen
class Provider:
    """`next_at` is when the next run of a paused provider may start; runs start one by one."""

    kind: ClassVar[str] = "provider"
    machine: ClassVar[Machine] = PROVIDER

    id: str
    state: str = ProviderState.OPEN
    next_at: float = 0.0
    reason: str = ""

    @property
    def opens_at(self) -> float | None:
        """When the next run may start; None unless it is paused."""
        return self.next_at if self.state == ProviderState.PAUSED else None
