"""The rows of pauses: a provider at its rate limit, and the outage of an agent kind."""

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


class OutageState(StrEnum):
    OPEN = "open"
    OVER = "over"


OUTAGE = Machine(
    name="outage",
    first=OutageState.OPEN,
    moves=(
        Move(source="open", target="over", trigger="retried", meaning="a person fixed it"),
        Move(source="open", target="over", trigger="served", meaning="a step went well"),
        Move(source="open", target="over", trigger="installed", meaning="its program is back"),
        Move(source="over", target="open", trigger="failed", meaning="it fails again"),
    ),
)

PROGRAM_GONE = "program_gone"
"""The cause of an outage that no step has found: crew looks for the program, and ends it too."""


@frozen
class Outage:
    """`id` is the agent kind; `cause` is the kind of error, and `remedy` names the next step.

    While it is open, no step of this agent kind starts, and its tasks wait unchanged.
    """

    kind: ClassVar[str] = "outage"
    machine: ClassVar[Machine] = OUTAGE

    id: str
    state: str = OutageState.OPEN
    cause: str = ""
    reason: str = ""
    remedy: str = ""
    since: float = 0.0

    @property
    def is_open(self) -> bool:
        return self.state == OutageState.OPEN
