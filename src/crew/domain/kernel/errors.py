"""All errors that a person can get: a message, a hint with the next step, and an exit code."""

from typing import ClassVar


class CrewError(Exception):
    """Something failed; `hint` names the next step.

    `code` is for scripts and tests, which must not depend on the wording of the message. Each class
    has a general code, and a single error may have a more precise one.
    """

    code: str = "failed"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or self.code


class UsageError(CrewError):
    """The call itself is wrong."""

    code = "usage"
    exit_code = 2


class NotFound(CrewError):
    """The named thing does not exist."""

    code = "not_found"
    exit_code = 3


class NotInstalled(CrewError):
    """An agent's program is not on this machine."""

    code = "not_installed"
    exit_code = 1


class NeedsLogin(CrewError):
    """A person has to log in or provide a token first."""

    code = "needs_login"
    exit_code = 4


class Conflict(CrewError):
    """The request clashes with the present state, or another process holds the lock."""

    code = "conflict"
    exit_code = 5


class CheckFailed(CrewError):
    """A task failed its check, or is stuck."""

    code = "check_failed"
    exit_code = 6


class TryLater(CrewError):
    """Nothing is wrong, but the request cannot be served at this moment."""

    code = "try_later"
    exit_code = 75


class TimedOut(CrewError):
    """The wait was longer than its limit."""

    code = "timed_out"
    exit_code = 124


class Interrupted(CrewError):
    """A person ended it with Ctrl-C."""

    code = "interrupted"
    exit_code = 130


class InvalidTransition(Conflict):
    """A move that is not in the machine's table."""

    code = "invalid_transition"

    def __init__(
        self, machine: str, *, source: str, target: str, trigger: str, allowed: tuple[str, ...]
    ) -> None:
        super().__init__(
            f"{machine} cannot go from {source} to {target} by {trigger!r}",
            hint=f"from {source} it can: {', '.join(allowed) or 'nothing, it is final'}",
        )
        self.source = source
        self.target = target
        self.allowed = allowed
