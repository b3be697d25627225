"""Dialogs at terminals: while a program asks a person to choose, it takes no text."""

from collections.abc import Iterable

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.question import About, Question, QuestionState
from crew.domain.rows.run import Run
from crew.domain.rows.terminal import Terminal
from crew.domain.runs.questions import new_question
from crew.domain.world import FactDraft, World, born, moved, noted


@frozen
class Dialog:
    """A question that the program of a terminal asks on its screen."""

    question: str
    context: str
    choices: tuple[str, ...]


@frozen
class TerminalInput:
    """What a terminal's program takes now: text, or a choice. With neither, crew cannot tell."""

    takes_text: bool = False
    dialog: Dialog | None = None


def screens_seen(
    world: World, seen: Iterable[tuple[Terminal, TerminalInput]], *, at: float
) -> list[Fact]:
    """What follows from the screens of terminals; one that was replaced since is left out."""
    draft = FactDraft(world)
    for before, shown in seen:
        now = draft.world.terminals.get(before.id)
        if now is not None and now.is_open and now.number == before.number:
            draft.add(*looked_at(draft.world, world.runs[now.id], shown, at=at))
    return draft.facts


def looked_at(world: World, run: Run, seen: TerminalInput, *, at: float) -> list[Fact]:
    """Bring the inbox up to date with the screen of an open terminal."""
    terminal, draft = world.terminals[run.id], FactDraft(world)
    if seen.takes_text and terminal.held:
        draft.add(noted(terminal, "prompt_seen", at=at, held=False))
    draft.add(*_dialog_shown(draft.world, run, seen.dialog, at=at))
    return draft.facts


def not_typed(world: World, run: Run, seen: TerminalInput, *, at: float) -> list[Fact]:
    """Keep the text: no prompt waited for it. It is typed once one does."""
    terminal = world.terminals[run.id]
    draft = FactDraft(world)
    draft.add(noted(terminal, "not_typed", at=at, held=True))
    draft.add(*looked_at(draft.world, run, seen, at=at))
    return draft.facts


def dialog_answered(world: World, run: Run, *, at: float) -> list[Fact]:
    """Record that the answer was entered, or that the dialog was gone before."""
    return [noted(world.terminals[run.id], "dialog_closed", at=at, dialog="")]


def to_be_entered(world: World, terminal: Terminal) -> str:
    """The choice that a person made in the inbox; empty if there is none to enter."""
    question = world.questions.get(terminal.dialog)
    is_answered = question is not None and question.state == QuestionState.ANSWERED
    return question.answer if question is not None and is_answered else ""


def _dialog_shown(world: World, run: Run, dialog: Dialog | None, *, at: float) -> list[Fact]:
    terminal = world.terminals[run.id]
    question = world.questions.get(terminal.dialog)
    if question is not None and (not question.is_open or _is_same(question, dialog)):
        return []  # its answer is being entered, or it still waits
    facts: list[Fact] = []
    if question is not None:
        withdrawn = moved(question, "withdrawn", to=QuestionState.WITHDRAWN, at=at)
        facts = [withdrawn, noted(terminal, "dialog_closed", at=at, dialog="")]
    if dialog is None:
        return facts
    asked = new_question(
        world,
        run,
        text=dialog.question,
        context=dialog.context,
        at=at,
        about=About.DIALOG,
        choices=dialog.choices,
    )
    return [
        *facts,
        born(asked, "asked", at=at),
        noted(terminal, "dialog_seen", at=at, dialog=asked.id),
    ]


def _is_same(question: Question, dialog: Dialog | None) -> bool:
    shown = (dialog.question, dialog.choices) if dialog else None
    return shown == (question.question, question.choices)
