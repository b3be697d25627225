"""The outcome of one call of an agent's CLI: its text, its error, its usage, its signal."""

from collections.abc import Iterable
from dataclasses import field
from enum import StrEnum
from typing import Protocol, TypedDict

from crew.domain.kernel.frozen import frozen


class ErrorKind(StrEnum):
    """Why a step failed; each kind has its own next move."""

    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    AUTH = "auth"
    BILLING = "billing"
    SESSION_IN_USE = "session_in_use"
    SESSION_UNKNOWN = "session_unknown"
    CONTEXT_FULL = "context_full"
    PERMISSION_DENIED = "permission_denied"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    CRASHED = "crashed"
    NOT_INSTALLED = "not_installed"
    UNKNOWN_MODEL = "unknown_model"


FRESH_SESSION = frozenset(
    {
        ErrorKind.SESSION_IN_USE,
        ErrorKind.SESSION_UNKNOWN,
        ErrorKind.TIMEOUT,
        ErrorKind.STALLED,
        ErrorKind.CONTEXT_FULL,
    }
)
"""Errors after which crew starts one new session at once, without counting the error."""

LASTING = frozenset(
    {ErrorKind.AUTH, ErrorKind.BILLING, ErrorKind.NOT_INSTALLED, ErrorKind.UNKNOWN_MODEL}
)
"""Errors that waiting does not fix: every step of the agent kind fails until a person acts."""


@frozen
class StepError:
    """The error in one sentence; `reset_at` is when a rate limit ends, if known.

    `remedy` is what a person does about an error that lasts.
    """

    kind: ErrorKind
    message: str
    reset_at: float | None = None
    remedy: str = ""


class Account(Protocol):
    """A row that sums up the usage of its steps."""

    @property
    def input_tokens(self) -> int: ...

    @property
    def output_tokens(self) -> int: ...

    @property
    def cost_usd(self) -> float | None: ...


class Spent(TypedDict):
    """The sums of a row after one more step."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None


class LostCost(TypedDict, total=False):
    """What a row records if a program was ended before it reported its cost: None, unknown."""

    cost_usd: float | None


@frozen
class Usage:
    """The usage of one step; a cost of None is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    def added_to(self, row: Account) -> "Spent":
        """The fields of the row with this step added; one unknown cost makes the sum unknown."""
        known = row.cost_usd is not None and self.cost_usd is not None
        return {
            "input_tokens": row.input_tokens + self.input_tokens,
            "output_tokens": row.output_tokens + self.output_tokens,
            "cost_usd": (row.cost_usd or 0.0) + (self.cost_usd or 0.0) if known else None,
        }


def usage_sum(parts: Iterable[Usage]) -> Usage:
    """The sum; one unknown cost makes it unknown."""
    parts = tuple(parts)
    costs = [part.cost_usd for part in parts]
    return Usage(
        input_tokens=sum(part.input_tokens for part in parts),
        output_tokens=sum(part.output_tokens for part in parts),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


NOTHING = Usage()

UNREPORTED = Usage(cost_usd=None)
"""The usage of a program that was ended before it reported any."""


@frozen
class StepOutcome:
    """The outcome of a step; `session` is the one to resume next, `text` the end of its output."""

    session: str
    done: bool = False
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    error: StepError | None = None


class SignalKind(StrEnum):
    """What an agent reports at the end of its step."""

    COMPLETE = "complete"
    PARTIALLY_COMPLETE = "partially-complete"
    NEEDS_USER_INPUT = "needs-user-input"
    NEEDS_ROLE_FOLLOWUP = "needs-role-followup"


@frozen
class Signal:
    """`resume` is whether the asking session continues after the other role is done."""

    kind: SignalKind
    summary: str = ""
    progress: str = ""
    continue_at: str = ""
    question: str = ""
    context: str = ""
    role: str = ""
    reason: str = ""
    resume: bool = True
