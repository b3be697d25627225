"""A program at a terminal asks a person to choose: what crew records, and what it never types."""

import pytest

from crew.domain.clock import Clock
from crew.domain.commands import AnswerDialog, Inspect, TypeIntoTerminal
from crew.domain.kernel.errors import UsageError
from crew.domain.plan import decide, plan
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.message import Message
from crew.domain.terminals import terminal_outcomes
from crew.domain.terminals.dialogs import (
    Dialog,
    TerminalInput,
    dialog_answered,
    looked_at,
    not_typed,
    screens_seen,
    to_be_entered,
)
from crew.domain.world import apply_all, with_rows
from domain.scenes import RULES, after, at_terminal, with_changes

ASKS = Dialog(question="May I?", context="touch x", choices=("Yes", "Yes, always", "No"))
AT_DIALOG = TerminalInput(dialog=ASKS)
AT_PROMPT = TerminalInput(takes_text=True)


def seen(world, screen, *, at=50.0):
    return after(world, looked_at(world, world.runs["1.1"], screen, at=at))


def planned(world):
    return [one for one in plan(world, Clock(60.0), rules=RULES) if one.subject == "1.1"]


def answered(world, text):
    request = Request(verb="answer", args={"question": "q1", "text": text})
    return apply_all(world, answer(world, request, rules=RULES, at=55.0).facts)


def told(world, *texts):
    messages = [
        Message(id=f"m{n}", task="1", sender="a person", text=text, at=float(n))
        for n, text in enumerate(texts, start=1)
    ]
    return with_rows([*(row for kind in ROWS for row in getattr(world, kind).values()), *messages])


ROWS = ("agents", "tasks", "runs", "terminals", "questions")


def test_a_dialog_is_a_question_in_the_inbox_with_its_choices_once():
    world = seen(at_terminal(), AT_DIALOG)
    question = world.questions["q1"]
    assert (question.question, question.choices, question.about) == (
        "May I?",
        ASKS.choices,
        "dialog",
    )
    assert world.terminals["1.1"].dialog == "q1"
    assert looked_at(world, world.runs["1.1"], AT_DIALOG, at=51.0) == []
    assert decide(world, Clock(60.0), rules=RULES) == []


def test_a_dialog_that_a_person_answers_at_the_terminal_is_withdrawn():
    world = seen(seen(at_terminal(), AT_DIALOG), AT_PROMPT)
    assert (world.questions["q1"].state, world.terminals["1.1"].dialog) == ("withdrawn", "")


def test_another_dialog_in_its_place_is_another_question():
    other = TerminalInput(dialog=Dialog(question="And this?", context="", choices=("Yes", "No")))
    world = seen(seen(at_terminal(), AT_DIALOG), other)
    assert (world.questions["q1"].state, world.questions["q2"].state) == ("withdrawn", "open")
    assert world.terminals["1.1"].dialog == "q2"


@pytest.mark.parametrize(
    ("text", "choice"),
    [("1", "Yes"), ("yes", "Yes"), ("Yes, always", "Yes, always"), ("NO", "No"), ("3", "No")],
)
def test_an_answer_names_a_choice_by_its_number_or_its_words(text, choice):
    world = answered(seen(at_terminal(), AT_DIALOG), text)
    assert world.questions["q1"].answer == choice
    assert planned(world) == [AnswerDialog(subject="1.1")]
    assert to_be_entered(world, world.terminals["1.1"]) == choice
    world = after(world, dialog_answered(world, world.runs["1.1"], at=56.0))
    assert (planned(world), world.terminals["1.1"].dialog) == ([], "")


@pytest.mark.parametrize("text", ["maybe", "4", "0", "no, do not do that"])
def test_an_answer_that_is_no_choice_is_refused(text):
    with pytest.raises(UsageError, match="not a choice"):
        answered(seen(at_terminal(), AT_DIALOG), text)


def test_the_dialog_of_a_finished_task_can_be_answered_while_its_terminal_is_open():
    world = at_terminal(run_state="complete", task_state="done", task_written="done")
    world = answered(seen(world, AT_DIALOG), "no")
    assert planned(world) == [AnswerDialog(subject="1.1")]


def test_nothing_is_typed_while_a_dialog_shows_and_work_is_inspected_all_the_same():
    world = with_changes(told(at_terminal(run_state="reviewing"), "hello"), terminal_untyped=True)
    assert planned(world) == [TypeIntoTerminal(subject="1.1")]
    assert planned(seen(world, AT_DIALOG)) == [Inspect(subject="1.1")]


def test_words_that_no_prompt_waited_for_are_typed_when_one_does():
    world = told(at_terminal(), "hello")
    assert planned(world) == [TypeIntoTerminal(subject="1.1")]
    world = after(world, not_typed(world, world.runs["1.1"], TerminalInput(), at=51.0))
    assert (planned(world), world.messages["m1"].state) == ([], "queued")
    assert planned(seen(world, TerminalInput())) == []
    world = seen(world, AT_PROMPT)
    assert planned(world) == [TypeIntoTerminal(subject="1.1")]
    messages = tuple(world.messages.values())
    world = after(world, terminal_outcomes.typed(world, world.runs["1.1"], messages, at=52.0))
    assert (planned(world), world.messages["m1"].state) == ([], "read")


def test_a_dialog_found_while_typing_is_asked_about_at_once():
    world = told(at_terminal(), "hello")
    world = after(world, not_typed(world, world.runs["1.1"], AT_DIALOG, at=51.0))
    assert (planned(world), world.questions["q1"].state) == ([], "open")


def test_a_terminal_that_closes_forgets_its_dialog_and_the_question_is_withdrawn():
    world = seen(at_terminal(leaving=""), AT_DIALOG)
    world = after(world, terminal_outcomes.closed(world, world.runs["1.1"], at=52.0))
    terminal = world.terminals["1.1"]
    assert (terminal.dialog, terminal.held, terminal.state) == ("", False, "closed")
    world = after(world, decide(world, Clock(60.0), rules=RULES))
    assert world.questions["q1"].state == "withdrawn"


def test_the_screen_of_an_earlier_terminal_says_nothing_about_the_next_one():
    before = at_terminal().terminals["1.1"]
    world = at_terminal(number=1)
    assert screens_seen(world, [(before, AT_DIALOG)], at=50.0) == []
    closed = at_terminal(is_up=False)
    assert screens_seen(closed, [(before, AT_DIALOG)], at=50.0) == []


def test_a_persons_words_are_typed_as_they_are_and_others_with_their_name():
    own = Message(id="m1", task="1", sender="a person", text="hello", at=1.0)
    other = Message(id="m2", task="1", sender="task 2", text="hello", at=1.0)
    assert own.typed == "hello"
    assert "From task 2" in other.typed
