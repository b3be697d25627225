"""What an agent at a terminal may say with its own token, and what a reviewer may read."""

from dataclasses import replace

import pytest

from crew.domain.kernel.errors import Conflict
from crew.domain.lead_choice import lead_of
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.message import Message
from crew.domain.runs.complaints import Evidence
from crew.domain.runs.run_outcomes import checked, completed
from crew.domain.terminals.terminal_outcomes import not_inspected
from domain.scenes import RULES, after, at_terminal

SUMMARY = {"signal": "complete", "summary": "all done"}
QUESTION = {"signal": "needs-user-input", "question": "Which database?", "context": "two exist"}


def ask(world, verb, **args):
    """The world after it, and the reply."""
    args = {"run": "1.1", "terminal": 0, **args}
    found = answer(world, Request(verb=verb, args=args), rules=RULES, at=50.0)
    return after(world, found.facts), found.reply


def refused(world, **args):
    with pytest.raises(Conflict) as caught:
        ask(world, "signal", **args)
    return f"{caught.value.message}; {caught.value.hint}"


def run_of(world):
    return world.runs["1.1"]


def terminal_of(world):
    return world.terminals["1.1"]


def test_complete_at_a_terminal_has_the_work_checked():
    world, reply = ask(at_terminal(), "signal", **SUMMARY)
    assert run_of(world).state == "reviewing"
    assert "crew checks the work" in reply
    world = after(
        world, completed(world, run_of(world), lead_of(world, run_of(world)), "h", at=51.0)
    )
    assert (run_of(world).signal, world.tasks["1"].state) == ("", "done")


def test_a_complaint_about_signalled_work_is_typed_since_no_command_prints_it():
    world, _ = ask(at_terminal(), "signal", **SUMMARY)
    found = Evidence(head="h", uncommitted=("a",))
    world = after(
        world,
        checked(world, run_of(world), lead_of(world, run_of(world)), found, rules=RULES, at=51.0),
    )
    run = run_of(world)
    assert (run.state, terminal_of(world).untyped, run.notes, run.signal) == (
        "working",
        True,
        "> a",
        "",
    )


def test_signalled_work_that_cannot_be_checked_is_typed_too():
    world, _ = ask(at_terminal(), "signal", **SUMMARY)
    world = after(world, not_inspected(world, run_of(world), "no make", at=51.0))
    run = run_of(world)
    assert (terminal_of(world).untyped, run.notes, run.signal) == (True, "no make", "")


def test_a_question_from_a_terminal_is_asked_and_its_answer_typed_there():
    world, reply = ask(at_terminal(), "signal", **QUESTION)
    assert (run_of(world).state, run_of(world).question) == ("working", "q1")
    assert "q1" in reply
    assert "q1 waits for its answer" in refused(world, **QUESTION)
    world, _ = ask(world, "answer", question="q1", text="PostgreSQL")
    run = run_of(world)
    assert (run.question, terminal_of(world).untyped, run.ask) == ("", True, "answer")
    assert "PostgreSQL" in run.notes


@pytest.mark.parametrize(
    "said",
    [
        {"signal": "partially-complete", "progress": "p", "continuationPoint": "c"},
        {"signal": "needs-role-followup", "targetRole": "r", "reason": "w"},
    ],
)
def test_other_signals_are_for_steps(said):
    assert "send complete or needs-user-input" in refused(at_terminal(), **said)


@pytest.mark.parametrize(
    "changes",
    [
        {"number": 1},
        {"leaving": "stopped"},
        {"is_up": False},
    ],
)
def test_a_terminal_that_is_over_says_nothing_more(changes):
    assert "that terminal has ended" in refused(at_terminal(**changes), **SUMMARY)


def test_messages_that_a_terminal_fetches_are_read():
    world = at_terminal()
    message = Message(id="m1", task="1", sender="ann", text="hello", at=1.0)
    world = replace(world, messages={"m1": message})
    world, reply = ask(world, "fetch_messages")
    assert reply == [{"id": "m1", "from": "ann", "text": "hello"}]
    assert world.messages["m1"].state == "read"
    assert ask(world, "fetch_messages")[1] == []
