"""What agents and people say to each other through crew, in every state of a run."""

import pytest

from crew.domain.kernel.errors import Conflict, NotFound, UsageError
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.agent import Agent
from crew.domain.rows.message import LONGEST_MESSAGE, Message
from crew.domain.rows.question import About, Question
from crew.domain.rows.run import Ask, RunState
from crew.domain.rows.task import TaskState
from crew.domain.runs.message_outcomes import messages_for
from crew.domain.runs.questions import new_question
from crew.domain.runs.run_holder import is_waiting
from domain.scenes import RULES, after, given, holding, with_changes

STEP = {"run": "1.1", "attempt": 3}
COMPLETE = {"signal": "complete", "summary": "login fixed"}
PARTLY = {"signal": "partially-complete", "progress": "half", "continue_at": "the rest"}
NEEDS = {"signal": "needs-user-input", "question": "Which one?", "context": "two are there"}
FOLLOWUP = {"signal": "needs-role-followup", "role": "lawbringer", "reason": "look"}
SIGNALS = [COMPLETE, PARTLY, NEEDS]


def ask(world, verb, at=50.0, **args):
    return answer(world, Request(verb=verb, args=args), rules=RULES, at=at)


def said(world, verb, **args):
    return after(world, ask(world, verb, **args).facts)


def refused(world, verb, *, by=Conflict, **args):
    with pytest.raises(by) as caught:
        ask(world, verb, **args)
    assert caught.value.hint
    return caught.value.message


def stepping(state="working", **changes):
    """The third attempt at a step of run 1.1 is under way."""
    return holding(state, **{"run_stepping": True, "run_attempt": 3, "run_step": 2, **changes})


# Signals


@pytest.mark.parametrize(
    ("told", "signal", "notes"),
    [
        (COMPLETE, "complete", "login fixed"),
        (PARTLY, "partially-complete", "Done so far: half\n\nContinue at: the rest"),
        (NEEDS, "needs-user-input", "Which one?"),
    ],
)
def test_a_signal_is_recorded_and_moves_nothing_before_the_step_ends(told, signal, notes):
    world = stepping()
    after_it = said(world, "signal", **STEP, **told)
    run = after_it.runs["1.1"]
    assert (run.signal, run.signal_notes, run.state) == (signal, notes, "working")
    assert (run.stepping, run.agent) == (True, "A")
    assert after_it.agents == world.agents
    assert ask(world, "signal", **STEP, **told).reply == f"{signal} is recorded; end your step now"


@pytest.mark.parametrize("first", SIGNALS)
@pytest.mark.parametrize("second", [*SIGNALS, {"signal": "nonsense"}])
def test_the_first_signal_counts_and_every_later_one_is_refused(first, second):
    world = said(stepping(), "signal", **STEP, **first)
    message = refused(world, "signal", **STEP, **second)
    assert f"has signalled {first['signal']} already" in message


@pytest.mark.parametrize("told", SIGNALS)
@pytest.mark.parametrize("state", RunState)
def test_a_signal_outside_of_a_step_is_late_whatever_the_run_is(told, state):
    world = holding("working", run_state=state, run_attempt=3)
    assert refused(world, "signal", **STEP, **told) == "that step has ended; nothing was changed"


@pytest.mark.parametrize("attempt", [0, 2, 4, None])
def test_a_signal_of_another_attempt_changes_nothing(attempt):
    message = refused(stepping(), "signal", run="1.1", attempt=attempt, **COMPLETE)
    assert "that step has ended" in message


def test_a_signal_of_a_run_that_nobody_knows_changes_nothing():
    assert "that step has ended" in refused(stepping(), "signal", run="9.9", attempt=3, **COMPLETE)


@pytest.mark.parametrize("wrong", [{"signal": "complete"}, {"signal": "done"}, {"signal": None}])
def test_a_signal_that_is_wrong_is_refused_and_the_next_one_counts(wrong):
    world = stepping()
    refused(world, "signal", by=UsageError, **STEP, **wrong)
    assert said(world, "signal", **STEP, **COMPLETE).runs["1.1"].signal == "complete"


def test_where_no_other_role_works_a_followup_is_refused_and_another_signal_may_come():
    world = stepping()
    assert "no other role" in refused(world, "signal", **STEP, **FOLLOWUP)
    assert said(world, "signal", **STEP, **NEEDS).questions


# Questions


def test_a_question_waits_in_the_inbox_with_who_asked_and_why():
    world = said(stepping(), "signal", **STEP, **NEEDS)
    assert world.questions["q1"] == Question(
        id="q1",
        task="1",
        run="1.1",
        role="worker",
        question="Which one?",
        context="two are there",
        asked_at=50.0,
    )
    assert world.runs["1.1"].question == "q1"


def test_every_question_has_a_name_of_its_own():
    world = said(said(stepping(), "signal", **STEP, **NEEDS), "answer", question="q1", text="a")
    new = new_question(world, world.runs["1.1"], text="And?", context="", at=60.0)
    assert new.id == "q2"


def parked(**changes):
    """Run 1.1 has asked q1 and waits for nobody but a person."""
    world = holding("working", run_agent=None, run_question="q1", run_session="s1", **changes)
    question = Question(id="q1", task="1", run="1.1", role="worker", question="Which one?")
    return given(
        Agent(id="A", agent_kind="claude"), *world.runs.values(), *world.tasks.values(), question
    )


def test_the_answer_lets_the_run_go_on_in_its_own_session():
    world = said(parked(), "answer", question="q1", text="the first")
    question, run = world.questions["q1"], world.runs["1.1"]
    assert (question.state, question.answer, question.answered_at) == ("answered", "the first", 50)
    assert (run.ask, run.session, run.question) == (Ask.ANSWER, "s1", "")
    assert run.notes == "You asked:\n> Which one?\n\nThe answer:\n> the first"
    assert is_waiting(world, run)


def test_a_run_waits_for_nobody_to_take_it_up_while_its_question_is_open():
    assert not is_waiting(parked(), parked().runs["1.1"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the answer is empty"),
        (" \n", "the answer is empty"),
        ("x" * 100_001, "the answer has 100,001 characters; the limit is 100,000"),
    ],
)
def test_an_answer_that_says_nothing_or_too_much_leaves_the_question_open(text, words):
    assert refused(parked(), "answer", by=UsageError, question="q1", text=text) == words


@pytest.mark.parametrize("state", ["answered", "withdrawn"])
def test_a_question_that_is_over_is_not_answered_again(state):
    message = refused(
        with_changes(parked(), question_state=state), "answer", question="q1", text="x"
    )
    assert message == f"question q1 is {state}"


@pytest.mark.parametrize("state", ["complete", "failed"])
def test_an_answer_that_comes_just_after_its_run_ended_is_refused(state):
    world = parked(run_state=state)
    assert refused(world, "answer", question="q1", text="x") == "question q1 is withdrawn"


def test_a_question_that_nobody_asked_is_not_found_and_the_open_ones_are_named():
    with pytest.raises(NotFound) as caught:
        ask(parked(), "answer", question="q9", text="x")
    assert "q1" in caught.value.hint
    with pytest.raises(NotFound) as caught:
        ask(holding("working"), "answer", question="q9", text="x")
    assert "none" in caught.value.hint


def test_leave_to_use_a_tool_is_answered_without_touching_the_run():
    world = stepping()
    question = new_question(
        world, world.runs["1.1"], text="May it?", context="rm", at=40.0, about=About.PERMISSION
    )
    world = given(*world.agents.values(), *world.runs.values(), *world.tasks.values(), question)
    after_it = said(world, "answer", question="q1", text="yes")
    assert after_it.questions["q1"].answer == "yes"
    assert after_it.runs == world.runs


# Messages


def test_a_message_is_kept_for_whoever_works_at_the_task():
    reply = ask(stepping(), "message", task="1", sender="ann", text="mind the tests")
    assert reply.reply == "m1"
    world = after(stepping(), reply.facts)
    assert world.messages["m1"] == Message(
        id="m1", task="1", sender="ann", text="mind the tests", at=50.0
    )


@pytest.mark.parametrize("state", TaskState)
def test_a_message_to_a_task_that_is_over_is_refused(state):
    world = stepping(task_state=state)
    if state in {"merged", "closed"}:
        message = refused(world, "message", task="1", sender="ann", text="hello")
        assert message == f"task 1 is {state}, so no agent will read it"
    else:
        assert said(world, "message", task="1", sender="ann", text="hello").messages


def test_a_message_to_a_task_that_nobody_knows_is_refused():
    args = {"task": "9", "sender": "ann", "text": "hello"}
    assert "'9'" in refused(stepping(), "message", by=NotFound, **args)


def test_a_message_is_cut_to_what_a_prompt_can_hold():
    world = said(stepping(), "message", task="1", sender="ann", text="x" * (LONGEST_MESSAGE + 1))
    assert len(world.messages["m1"].text) == LONGEST_MESSAGE


def with_messages(world, *texts):
    for at, text in enumerate(texts):
        world = said(world, "message", at=at, task="1", sender="ann", text=text)
    return world


def test_an_agent_fetches_what_came_in_during_its_step_once():
    world = with_messages(stepping(), "first", "second")
    reply = ask(world, "fetch_messages", **STEP)
    assert [one["text"] for one in reply.reply] == ["first", "second"]
    assert reply.reply[0] == {"id": "m1", "from": "ann", "text": "first"}
    world = after(world, reply.facts)
    assert [(m.state, m.step) for m in world.messages.values()] == [("given", "1.1/1/2")] * 2
    assert ask(world, "fetch_messages", **STEP).reply == []


def test_what_was_fetched_is_read_only_when_the_step_ends_well():
    world = said(with_messages(stepping(), "first"), "fetch_messages", **STEP)
    assert messages_for(world, "1") == [world.messages["m1"]]


def test_an_agent_fetches_nothing_of_another_task_and_nothing_after_its_step():
    other = Message(id="m1", task="2", sender="ann", text="not yours", at=1.0)
    world = stepping()
    world = given(*world.agents.values(), *world.runs.values(), *world.tasks.values(), other)
    assert ask(world, "fetch_messages", **STEP).reply == []
    refused(world, "fetch_messages", run="1.1", attempt=2)
    refused(holding("working", run_attempt=3), "fetch_messages", **STEP)
