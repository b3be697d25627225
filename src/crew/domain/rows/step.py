"""One call of an agent's CLI: what it is asked, and what came of it."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path

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


FRESH_SESSION = frozenset(
    {
        ErrorKind.SESSION_IN_USE,
        ErrorKind.SESSION_UNKNOWN,
        ErrorKind.TIMEOUT,
        ErrorKind.STALLED,
        ErrorKind.CONTEXT_FULL,
    }
)
"""Errors that are answered once with a new session, at once and without counting."""


@frozen
class StepError:
    """What went wrong, in one sentence; `reset_at` is when a rate limit ends, if known."""

    kind: ErrorKind
    message: str
    reset_at: float | None = None


@frozen
class Usage:
    """What one step used; a cost of None means that nobody knows it."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0


@frozen
class StepOrder:
    """Everything an adapter needs for one step; `resume` says whether the session exists."""

    key: str  # run/round/step/attempt, unique for ever in this repository
    agent: str
    kind: str
    worktree: Path
    prompt: str
    session: str
    resume: bool
    log: Path
    done_word: str = "DONE"
    timeout_s: float = 1800.0
    idle_timeout_s: float = 600.0
    env: Mapping[str, str] = field(default_factory=dict)  # the CREW_ variables of this step
    looks_only: bool = False  # the worktree cannot be changed, where bubblewrap can see to it
    writable: tuple[Path, ...] = ()  # but for these


@frozen
class StepOutcome:
    """What came of a step; `session` is the one to resume next, `text` the end of its words."""

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
