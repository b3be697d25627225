"""Signals: what an agent reports about its step; the first one counts."""

from typing import Any

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.requests import Answer, Asked
from crew.domain.rows.run import Run
from crew.domain.rows.step import Signal, SignalKind
from crew.domain.runs.new_question import new_question
from crew.domain.runs.signal_format import read_signal
from crew.domain.runs.speaking_run import speaking_run
from crew.domain.world import born, noted


def signal_of_step(asked: Asked) -> Answer:
    """The first signal of a step counts; it is recorded now and acted on when the step ends."""
    run = speaking_run(asked.world, asked.args)
    if run.signal:
        raise Conflict(
            f"this step has signalled {run.signal} already, and only the first signal counts",
            hint="end your step now",
        )
    told = read_signal(asked.args)
    asked.leads.of_run(asked.world, run).check_signal(asked.world, run, told)
    facts = [noted(run, "signalled", at=asked.at, **_noted(told))]
    if told.kind == SignalKind.NEEDS_USER_INPUT:
        facts = _question_asked(asked, run, told)
    return Answer(facts=tuple(facts), reply=f"{told.kind} is recorded; end your step now")


def _noted(told: Signal) -> dict[str, Any]:
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


def _question_asked(asked: Asked, run: Run, told: Signal) -> list[Fact]:
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
