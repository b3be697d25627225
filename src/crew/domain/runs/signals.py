"""Signals: how an agent's report about its step is parsed and checked, and which one counts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import Conflict, UsageError
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.requests import Answer, Asked
from crew.domain.rows.run import Run
from crew.domain.rows.step import Signal, SignalKind
from crew.domain.runs.questions import new_question
from crew.domain.runs.speaking_run import Speaker, speaking_run
from crew.domain.world import born, noted

if TYPE_CHECKING:
    from crew.domain.row_changes import RunFields

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
"""The names under which agents send these fields."""

LONGEST = 20_000
"""Characters of one field, which prompts and pages for people repeat."""

_TEXTS = ("summary", "progress", "continue_at", "question", "context", "role", "reason")


def read_signal(values: Mapping[str, object]) -> Signal:
    """Parse a signal from a flat object; an error names what the sender has to fix."""
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


def _kind(named: object) -> SignalKind:
    known = ", ".join(SignalKind)
    if named not in tuple(SignalKind):
        raise UsageError(f"{named!r} is not a signal", hint=f"send one of: {known}")
    return SignalKind(str(named))


def _text(values: Mapping[str, object], name: str) -> str:
    said = values.get(SPOKEN.get(name, name), values.get(name, ""))
    if not isinstance(said, str | None):
        raise UsageError(
            f"{SPOKEN.get(name, name)} must be a text", hint="send it again as a string"
        )
    return (said or "").strip()[:LONGEST]


@frozen
class SentSignal:
    """The values are as the agent wrote them; `read_signal` explains what is wrong with them."""

    speaker: Speaker
    values: Mapping[str, object]


def signal_of_step(asked: Asked[SentSignal]) -> Answer:
    """Record the first signal of a step; crew acts on it when the step ends."""
    run = speaking_run(asked.world, asked.request.speaker)
    if run.signal:
        raise Conflict(
            f"this step has signalled {run.signal} already, and only the first signal counts",
            hint="end your step now",
        )
    told = read_signal(asked.request.values)
    asked.leads.of_run(asked.world, run).check_signal(asked.world, run, told)
    facts = [noted(run, "signalled", at=asked.at, **_noted(told))]
    if told.kind == SignalKind.NEEDS_USER_INPUT:
        facts = _question_asked(asked, run, told)
    return Answer(facts=tuple(facts), reply=f"{told.kind} is recorded; end your step now")


def _noted(told: Signal) -> "RunFields":
    notes = told.summary
    if told.kind == SignalKind.PARTIALLY_COMPLETE:
        notes = f"Done so far: {told.progress}\n\nContinue at: {told.continue_at}"
    if told.kind == SignalKind.NEEDS_ROLE_FOLLOWUP:
        notes = f"{told.reason}\n\n{told.context}".strip()
    return {
        "signal": told.kind,
        "signal_notes": notes,
        "signal_role": told.role,
        "signal_resume": told.resume,
    }


def _question_asked(asked: Asked[SentSignal], run: Run, told: Signal) -> list[Fact]:
    question = new_question(asked.world, run, text=told.question, context=told.context, at=asked.at)
    noted_run = noted(
        run,
        "signalled",
        at=asked.at,
        signal=told.kind,
        signal_notes=told.question,
        question=question.id,
    )
    return [born(question, "asked", at=asked.at), noted_run]
