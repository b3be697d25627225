"""Signals of the agent at a terminal: its work is finished, or it needs a person."""

from collections.abc import Mapping

from crew.domain.kernel.errors import Conflict
from crew.domain.requests import Answer, Asked, Request, Verb, parsed
from crew.domain.rows.run import Run
from crew.domain.rows.step import Signal, SignalKind
from crew.domain.runs.questions import new_question
from crew.domain.runs.signals import SentSignal, read_signal, signal_of_step
from crew.domain.runs.speaking_run import Speaker, speaking_run
from crew.domain.terminals.terminal_requests import CompleteTask, complete
from crew.domain.world import born, noted


def signal(asked: Asked[SentSignal]) -> Answer:
    """Handle the signal of an agent, in a step or at a terminal."""
    if asked.request.speaker.terminal is None:
        return signal_of_step(asked)
    run = speaking_run(asked.world, asked.request.speaker)
    return signal_at_terminal(asked, run, read_signal(asked.request.values))


def signal_at_terminal(asked: Asked[SentSignal], run: Run, told: Signal) -> Answer:
    """Handle a signal at a terminal; the session continues and gets the result."""
    if told.kind == SignalKind.COMPLETE:
        return _completed(asked, run, told)
    if told.kind == SignalKind.NEEDS_USER_INPUT:
        return _asked(asked, run, told)
    raise Conflict(
        f"{told.kind} ends a step, and this is a terminal",
        hint="send complete or needs-user-input, or keep working",
    )


def _completed(asked: Asked[SentSignal], run: Run, told: Signal) -> Answer:
    """As `crew complete`, but the complaint is typed, because no command waits to print it."""
    found = complete(asked.instead(CompleteTask(task=run.task)))
    said = noted(run, "signalled", at=asked.at, signal=told.kind, signal_notes=told.summary)
    reply = "crew checks the work; what must change is typed into this terminal"
    return Answer(facts=(*found.facts, said), reply=reply)


def _asked(asked: Asked[SentSignal], run: Run, told: Signal) -> Answer:
    if run.question:
        raise Conflict(
            f"your question {run.question} waits for its answer",
            hint="the answer is typed into this terminal",
        )
    question = new_question(asked.world, run, text=told.question, context=told.context, at=asked.at)
    facts = (
        born(question, "asked", at=asked.at),
        noted(run, "question_asked", at=asked.at, question=question.id),
    )
    reply = f"question {question.id} is recorded; its answer is typed into this terminal"
    return Answer(facts=facts, reply=reply)


def _sent(asked: Asked[Request]) -> Answer:
    sent = SentSignal(speaker=parsed(Speaker, asked.request), values=asked.request.args)
    return signal(asked.instead(sent))


VERBS: Mapping[str, Verb] = {"signal": _sent}
