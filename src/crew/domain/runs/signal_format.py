"""The form of a signal: four kinds, each with what must come with it."""

from collections.abc import Mapping
from typing import Any

from crew.domain.kernel.errors import UsageError
from crew.domain.rows.step import Signal, SignalKind

NEEDED: Mapping[SignalKind, tuple[str, ...]] = {
    SignalKind.COMPLETE: ("summary",),
    SignalKind.PARTIALLY_COMPLETE: ("progress", "continue_at"),
    SignalKind.NEEDS_USER_INPUT: ("question",),
    SignalKind.NEEDS_ROLE_FOLLOWUP: ("role", "reason"),
}

SPOKEN: Mapping[str, str] = {
    "continue_at": "continuationPoint",
    "role": "targetRole",
}
"""Fields that agents know by the name of the seed."""

LONGEST = 20_000
"""Characters of one field: it goes into prompts and before people."""

_TEXTS = ("summary", "progress", "continue_at", "question", "context", "role", "reason")


def read_signal(values: Mapping[str, Any]) -> Signal:
    """A signal from a flat object; whatever is wrong is said so that the sender can mend it."""
    kind = _kind(values.get("signal"))
    texts = {name: _text(values, name) for name in _TEXTS}
    missing = [SPOKEN.get(name, name) for name in NEEDED[kind] if not texts[name]]
    if missing:
        raise UsageError(
            f"the signal {kind} needs {' and '.join(missing)}",
            hint=f"send it again with {', '.join(missing)} filled in",
        )
    resume = values.get("resume", True)
    if not isinstance(resume, bool):
        raise UsageError("resume must be true or false", hint="send it again with a boolean")
    return Signal(kind=kind, resume=resume, **texts)


def _kind(named: Any) -> SignalKind:
    known = ", ".join(SignalKind)
    if named not in tuple(SignalKind):
        raise UsageError(f"{named!r} is not a signal", hint=f"send one of: {known}")
    return SignalKind(named)


def _text(values: Mapping[str, Any], name: str) -> str:
    said = values.get(SPOKEN.get(name, name), values.get(name, ""))
    if not isinstance(said, str | None):
        raise UsageError(
            f"{SPOKEN.get(name, name)} must be a text", hint="send it again as a string"
        )
    return (said or "").strip()[:LONGEST]
