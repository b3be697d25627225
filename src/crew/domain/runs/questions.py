"""Questions for a person: how they are asked, answered and withdrawn.

A CLI may ask during a step, for permission or for a choice. The step waits for the answer for some
minutes. Then, or if it ends before, the run waits without a step, as for any other question, and
the answer resumes its session.
"""

from crew.domain.kernel.errors import Conflict, NotFound, UsageError
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.quotation import attributed
from crew.domain.requests import Answer, Asked
from crew.domain.rows.message import A_PERSON, LONGEST_MESSAGE
from crew.domain.rows.question import About, Question, QuestionState
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.step import SignalKind
from crew.domain.runs.message_outcomes import new_message
from crew.domain.world import World, born, moved, noted


def new_question(
    world: World,
    run: Run,
    *,
    text: str,
    context: str,
    at: float,
    about: About = About.INPUT,
    choices: tuple[str, ...] = (),
) -> Question:
    return Question(
        id=f"q{len(world.questions) + 1}",
        task=run.task,
        run=run.id,
        role=run.role or "worker",
        question=text,
        context=context,
        about=about,
        choices=choices,
        asked_at=at,
    )


_WITHOUT_NOTES = frozenset(
    {Ask.CONTINUE, Ask.NO_SIGNAL, Ask.NO_PLAN, Ask.NOTHING_COMMITTED, Ask.UNFINISHED}
)
"""Asks whose prompts have no room for an answer."""


@frozen
class AnswerQuestion:
    question: str
    text: str


def answer_question(asked: Asked[AnswerQuestion]) -> Answer:
    """Continue the run in its own session, with the answer."""
    question = open_question(asked)
    text = answer_text(asked, question)
    facts = [answered(question, text, at=asked.at)]
    run = asked.world.runs[question.run]
    is_awaited = run.stepping and not run.signal  # by the step under way, which asked
    if run.question == question.id and not is_awaited:
        facts.append(told(run, question, text, at=asked.at))
        facts += asked.leads.of_run(asked.world, run).pass_on(asked.world, run, at=asked.at)
        lead = asked.leads.of_task(asked.world, run.task)
        facts += lead.after_answer(asked.world, run, at=asked.at)
    if is_awaited and question.about == About.PERMISSION and _spelled(text) not in _PLAIN_ANSWERS:
        sent = new_message(asked.world, run.task, sender=A_PERSON, text=text, at=asked.at)
        facts.append(sent)
    return Answer(facts=tuple(facts), reply=question.id)


_PLAIN_ANSWERS = frozenset({"", "y", "yes", "ok", "allow", "n", "no"})
"""Answers to a permission request that say no more than that. Of others the agent gets the words:
a CLI takes only a yes or a no."""


def answered(question: Question, text: str, *, at: float) -> Fact:
    return moved(
        question, "answered", to=QuestionState.ANSWERED, at=at, answer=text, answered_at=at
    )


def answer_text(asked: Asked[AnswerQuestion], question: Question) -> str:
    """The text of an answer; an empty one denies a permission, and is refused elsewhere.

    An answer that names a choice, by its number or its words, is that choice.
    """
    text = asked.request.text
    if not text.strip() and question.about != About.PERMISSION:
        raise UsageError("the answer is empty", hint="answer again with a text")
    if len(text) > LONGEST_MESSAGE:
        raise UsageError(
            f"the answer has {len(text):,} characters; the limit is {LONGEST_MESSAGE:,}",
            hint="put the material into a file of the repository and name that file",
        )
    choice = read_choice(question, text)
    if choice is None and question.about in _ONE_OF_THE_CHOICES:
        raise UsageError(
            f"{text.strip()!r} is not a choice of question {question.id}",
            hint=f"choose one of: {', '.join(question.choices)}"
            if question.choices
            else f"`crew attach {question.task}` shows the dialog",
            code="invalid_choice",
        )
    return text if choice is None else choice


_OUTLIVES_ITS_RUN = frozenset({About.CONFLICT, About.DIALOG})
_ONE_OF_THE_CHOICES = _OUTLIVES_ITS_RUN | {About.LOST_SIDE}
"""Questions that take no other text."""


def read_choice(question: Question, text: str) -> str | None:
    """The choice that the answer names: by number, by its words, or by their only beginning."""
    said = _spelled(text)
    if said.isdecimal() and 1 <= int(said) <= len(question.choices):
        return question.choices[int(said) - 1]
    for choice in question.choices:
        if _spelled(choice) == said:
            return choice
    begun = [one for one in question.choices if said and f"{_spelled(one)} ".startswith(f"{said} ")]
    return begun[0] if len(begun) == 1 else None


def _spelled(text: str) -> str:
    """The words without case and punctuation."""
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def told(run: Run, question: Question, text: str, *, at: float) -> Fact:
    """The answer as notes for the agent that asked, or for the role that was blocked."""
    answer = attributed("The answer", text)
    asked = question.question
    if question.about == About.PERMISSION:
        asked = f"{asked}\n{question.context}".strip()
    notes = f"{attributed('You asked', asked)}\n\n{answer}"
    ask: str = Ask.ANSWER
    if question.about == About.BLOCKED:
        said = f"{attributed('A person was asked', question.question)}\n\n{answer}"
        notes = f"{run.notes}\n\n{said}".strip()
        ask = Ask.ANSWER if run.ask in _WITHOUT_NOTES else run.ask
    return noted(run, "answered", at=at, ask=ask, notes=notes, question="", error="")


def open_question(asked: Asked[AnswerQuestion]) -> Question:
    question = find_question(asked.world, asked.request.question)
    ends_with_run = question.about not in _OUTLIVES_ITS_RUN
    is_over = question.is_open and ends_with_run and not asked.world.runs[question.run].is_live
    state = QuestionState.WITHDRAWN if is_over else question.state
    if state != QuestionState.OPEN:
        raise Conflict(
            f"question {question.id} is {state}",
            hint="`crew inbox` lists the open questions",
            code="question_closed",
        )
    return question


def find_question(world: World, named: str) -> Question:
    if named not in world.questions:
        still_open = ", ".join(one.id for one in world.questions.values() if one.is_open)
        hint = f"open: {still_open}" if still_open else "none is open now (`crew inbox`)"
        raise NotFound(f"there is no question {named!r}", hint=hint)
    return world.questions[named]


YES_OR_NO = ("yes", "no")


@frozen
class LiveQuestion:
    """What a CLI asks during a step; `about` is INPUT or PERMISSION."""

    question: str
    context: str = ""
    choices: tuple[str, ...] = ()
    about: About = About.INPUT


def permission_to(tool: str, detail: str) -> LiveQuestion:
    return LiveQuestion(
        question=f"May the agent use {tool}? Answer yes or no.",
        context=detail,
        choices=YES_OR_NO,
        about=About.PERMISSION,
    )


def asked_live(
    world: World, run: Run, asked: LiveQuestion, *, at: float
) -> tuple[Question, list[Fact]]:
    """The question, and the facts that ask it.

    After its session was resumed with an answer, the CLI may ask the same once more. It then gets
    that answer, and no person is asked again.
    """
    if known := _answered_before(world, run, asked):
        return known, []
    question = new_question(
        world,
        run,
        text=asked.question,
        context=asked.context,
        at=at,
        about=asked.about,
        choices=asked.choices,
    )
    facts: list[Fact] = [born(question, "asked", at=at)]
    if not run.question:
        facts.append(noted(run, "asks_during_step", at=at, question=question.id))
    return question, facts


def _answered_before(world: World, run: Run, asked: LiveQuestion) -> Question | None:
    wanted = (asked.about, asked.question, asked.context)
    for one in world.questions.values():
        is_same = one.run == run.id and (one.about, one.question, one.context) == wanted
        if is_same and one.state == QuestionState.ANSWERED and not one.taken:
            return one
    return None


def answer_taken(world: World, question: Question, *, at: float) -> list[Fact]:
    """Record that the step has got the answer, so that it continues."""
    run = world.runs[question.run]
    facts: list[Fact] = [noted(question, "answer_taken", at=at, taken=True)]
    if run.question == question.id:
        facts.append(noted(run, "answer_taken", at=at, question=""))
    return facts


def put_off(world: World, run: Run, *, at: float) -> list[Fact]:
    """Let the run wait for the answer without a step; nothing if its step asks nothing."""
    question = asking(world, run)
    if question is None:
        return []
    signal = SignalKind.NEEDS_USER_INPUT
    return [noted(run, "signalled", at=at, signal=signal, signal_notes=question.question)]


def dropped(world: World, run: Run, *, at: float) -> list[Fact]:
    """Withdraw the question of a step that went well without its answer."""
    question = asking(world, run)
    if question is None:
        return []
    return [
        moved(question, "withdrawn", to=QuestionState.WITHDRAWN, at=at),
        noted(run, "question_withdrawn", at=at, question=""),
    ]


def asking(world: World, run: Run) -> Question | None:
    """The open question of the step under way; a question that ends a step is not meant."""
    question = world.questions.get(run.question) if not run.signal else None
    return question if question is not None and question.is_open else None


def answered_meanwhile(world: World, run: Run, *, at: float) -> list[Fact]:
    """Put an answer that no step has got into the next prompt."""
    question = world.questions.get(run.question)
    if run.signal or question is None or question.state != QuestionState.ANSWERED:
        return []
    return [told(run, question, question.answer, at=at)]
