"""What agents and people say to each other through crew: signals, questions, answers, messages."""

from collections.abc import Mapping
from typing import Any

from crew.domain.kernel.errors import Conflict, NotFound, UsageError
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.quotation import attributed
from crew.domain.merging.conflict_choice import chosen, read_choice
from crew.domain.quests.role_entry import answered
from crew.domain.quests.role_requests import check_signal
from crew.domain.requests import Answer, Asked, Verb, find_task, refuse_landed
from crew.domain.rows.message import LONGEST_MESSAGE, Message, MessageState
from crew.domain.rows.question import About, Question, QuestionState
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.task import FINISHED
from crew.domain.runs.new_question import new_question
from crew.domain.runs.signals import Signal, SignalKind, read_signal
from crew.domain.runs.step_outcomes import given, messages_for, messages_read
from crew.domain.terminals.terminal_signals import signal_at_terminal
from crew.domain.world import World, apply_all, born, moved, noted

_WITHOUT_NOTES = frozenset({Ask.CONTINUE, Ask.NO_SIGNAL, Ask.NO_PLAN, Ask.NOTHING_COMMITTED})
"""Asks whose prompts have no room for an answer."""


def signal(asked: Asked) -> Answer:
    """The first signal of a step counts; it is recorded now and acted on when the step ends."""
    run = speaking_run(asked.world, asked.args)
    if asked.args.get("terminal") is not None:
        return signal_at_terminal(asked, run, read_signal(asked.args))
    if run.signal:
        raise Conflict(
            f"this step has signalled {run.signal} already, and the first signal counts",
            hint="end your turn now",
        )
    told = read_signal(asked.args)
    check_signal(asked.world, run, told)
    facts = [noted(run, "signalled", at=asked.at, **_noted(told))]
    if told.kind == SignalKind.NEEDS_USER_INPUT:
        facts = _question_asked(asked, run, told)
    return Answer(facts=tuple(facts), reply=f"{told.kind} is recorded; end your turn now")


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


def answer_question(asked: Asked) -> Answer:
    """The run goes on in its own session, with the answer."""
    question = _question(asked)
    text = _answer_text(asked, question)
    if question.choices:
        text = read_choice(question, text)
    facts = [
        moved(
            question,
            "answered",
            to=QuestionState.ANSWERED,
            at=asked.at,
            answer=text,
            answered_at=asked.at,
        )
    ]
    run = asked.world.runs[question.run]
    if question.about == About.CONFLICT:
        facts += chosen(asked, question, text)
    elif run.question == question.id:
        facts.append(_told(run, question, text, at=asked.at))
        facts += answered(asked.world, run, at=asked.at)
    return Answer(facts=tuple(facts), reply=question.id)


def _answer_text(asked: Asked, question: Question) -> str:
    """Whoever asked for leave takes silence for a no; anybody else could not go on with it."""
    text = str(asked.args["text"])
    if not text.strip() and question.about != About.PERMISSION:
        raise UsageError("the answer is empty", hint="say it again with a text")
    if len(text) > LONGEST_MESSAGE:
        raise UsageError(
            f"the answer has {len(text):,} characters, and {LONGEST_MESSAGE:,} are the most",
            hint="put the material into a file of the repository and name that file",
        )
    return text


def _told(run: Run, question: Question, text: str, *, at: float) -> Fact:
    """Whoever asked is told the answer; whoever was blocked begins its part again with it."""
    answer = attributed("The answer", text)
    notes = f"{attributed('You asked', question.question)}\n\n{answer}"
    ask: str = Ask.ANSWER
    if question.about == About.BLOCKED:
        said = f"{attributed('A person was asked', question.question)}\n\n{answer}"
        notes = f"{run.notes}\n\n{said}".strip()
        ask = Ask.ANSWER if run.ask in _WITHOUT_NOTES else run.ask
    typed = run.is_pane_open and not run.leaving
    return noted(run, "answered", at=at, ask=ask, notes=notes, question="", error="", untyped=typed)


def _question(asked: Asked) -> Question:
    question = find_question(asked.world, str(asked.args["question"]))
    ends_with_run = question.about != About.CONFLICT
    is_over = question.is_open and ends_with_run and not asked.world.runs[question.run].is_live
    state = QuestionState.WITHDRAWN if is_over else question.state
    if state != QuestionState.OPEN:
        raise Conflict(
            f"question {question.id} is {state}", hint="`crew inbox` lists the open questions"
        )
    return question


def find_question(world: World, named: str) -> Question:
    if named not in world.questions:
        still_open = ", ".join(one.id for one in world.questions.values() if one.is_open)
        hint = f"open: {still_open}" if still_open else "none is open now (`crew inbox`)"
        raise NotFound(f"there is no question {named!r}", hint=hint)
    return world.questions[named]


def message(asked: Asked) -> Answer:
    """For whoever works at a task; it is given with the next step."""
    task = find_task(asked.world, str(asked.args["task"]))
    refuse_landed(task)
    if task.state in FINISHED:
        raise Conflict(
            f"task {task.id} is {task.state}: nobody will read it",
            hint="`crew new` makes a task for what is left to do",
        )
    new = Message(
        id=f"m{len(asked.world.messages) + 1}",
        task=task.id,
        sender=str(asked.args["sender"]),
        text=str(asked.args["text"])[:LONGEST_MESSAGE],
        at=asked.at,
    )
    return Answer(facts=(born(new, "sent", at=asked.at),), reply=new.id)


def fetch_messages(asked: Asked) -> Answer:
    """An agent looks for what came in during its step; it is read once that step ends well.

    A terminal session has no steps: there it is read at once.
    """
    run = speaking_run(asked.world, asked.args)
    found = [m for m in messages_for(asked.world, run.task) if m.state == MessageState.QUEUED]
    facts = [given(message, run.step_key, at=asked.at) for message in found]
    if asked.args.get("terminal") is not None:
        facts += messages_read(apply_all(asked.world, facts), run, at=asked.at)
    said = [{"id": m.id, "from": m.sender, "text": m.text} for m in found]
    return Answer(facts=tuple(facts), reply=said)


def speaking_run(world: World, args: Mapping[str, Any]) -> Run:
    """The run whose very step, terminal or review speaks; a late word of an ended one is refused.

    A review only reads, so that it may speak for its run at any time.
    """
    run = world.runs.get(str(args["run"]))
    number = args.get("terminal")
    if number is not None and (run is None or not _is_in_terminal(run, int(number))):
        raise Conflict("that terminal session is over, and nothing was changed", hint="end now")
    is_step = number is None and not args.get("review")
    if run is None or (is_step and not (run.stepping and run.attempt == int(args["attempt"]))):
        raise Conflict("that step is over, and nothing was changed", hint="end your turn now")
    return run


def _is_in_terminal(run: Run, number: int) -> bool:
    return run.is_pane_open and not run.leaving and run.pane_number == number


VERBS: Mapping[str, Verb] = {
    "signal": signal,
    "answer": answer_question,
    "message": message,
    "fetch_messages": fetch_messages,
}
