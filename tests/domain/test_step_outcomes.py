"""What follows when a step ends that has said something of itself, or had something to read."""

from dataclasses import replace

import pytest

from crew.domain.clock import Clock
from crew.domain.commands import Recover, Step
from crew.domain.lead_choice import lead_of
from crew.domain.plan import decide, plan
from crew.domain.rows.message import MESSAGE, Message
from crew.domain.rows.question import QUESTION, About, Question
from crew.domain.rows.run import Ask
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome, Usage
from crew.domain.rows.terminal import Terminal
from crew.domain.rules import Rules
from crew.domain.runs.message_outcomes import messages_for
from crew.domain.runs.run_holder import is_waiting
from crew.domain.runs.step_outcomes import step_ended, step_started
from crew.domain.world import TABLES
from domain.contract import MachineContract
from domain.scenes import RULES, after, given, holding, with_changes

FINE = StepOutcome(session="s1", usage=Usage(input_tokens=10, output_tokens=2, cost_usd=0.5))
CRASHED = StepOutcome(session="s1", error=StepError(kind=ErrorKind.CRASHED, message="it broke"))


class TestMessageMachine(MachineContract):
    machine = MESSAGE
    states = ("queued", "given", "read")
    seed = (("queued", "given", "given"), ("given", "read", "read"))
    rests = ("read",)
    final = ("read",)


class TestQuestionMachine(MachineContract):
    machine = QUESTION
    states = ("open", "answered", "withdrawn")
    seed = (("open", "answered", "answered"), ("open", "withdrawn", "withdrawn"))
    rests = ("answered", "withdrawn")
    final = ("answered", "withdrawn")


def with_rows(world, *rows):
    return given(*(row for kind in TABLES for row in world.rows(kind).values()), *rows)


def under_way(signal="", notes="", **changes):
    world = holding("working", **changes)
    facts = step_started(world, world.runs["1.1"], epoch=1, session="s1", at=10.0)
    return with_changes(after(world, facts), run_signal=signal, run_signal_notes=notes)


def ended(world, outcome=FINE, *, rules=RULES, at=20.0):
    facts = step_ended(
        world, world.runs["1.1"], lead_of(world, world.runs["1.1"]), outcome, rules=rules, at=at
    )
    return after(world, facts)


# What the step said of itself


@pytest.mark.parametrize("outcome", [FINE, CRASHED])
def test_complete_ends_the_round_also_if_the_process_came_to_a_bad_end(outcome):
    world = ended(under_way("complete", "all of it"), outcome)
    agent, run = world.agents["A"], world.runs["1.1"]
    assert (run.state, agent.state, agent.error_count) == ("reviewing", "done", 0)
    assert (run.signal, run.signal_notes, run.stepping) == ("", "", False)


@pytest.mark.parametrize("outcome", [FINE, CRASHED])
def test_partly_complete_goes_on_in_a_new_session_that_is_told_where(outcome):
    world = ended(under_way("partially-complete", "Continue at: the rest"), outcome)
    agent, run = world.agents["A"], world.runs["1.1"]
    assert (run.session, run.session_used, run.session_number) == ("", False, 1)
    assert (run.ask, run.notes) == (Ask.PARTIAL, "> Continue at: the rest")
    assert (run.state, run.round, agent.state, agent.error_count) == ("working", 1, "working", 0)


def test_one_that_is_never_more_than_partly_complete_comes_to_the_last_step_of_its_round():
    world = under_way("partially-complete", "more", run_step=19)
    assert ended(world).runs["1.1"].state == "reviewing"


def needing_input(**changes):
    question = Question(id="q1", task="1", run="1.1", role="worker", question="Which one?")
    world = under_way("needs-user-input", "Which one?", run_question="q1", **changes)
    return with_rows(world, question)


@pytest.mark.parametrize("outcome", [FINE, CRASHED])
def test_who_needs_a_person_frees_the_slot_and_keeps_the_session(outcome):
    world = ended(needing_input(), outcome)
    agent, run = world.agents["A"], world.runs["1.1"]
    assert (agent.state, agent.task, agent.run, agent.pid) == ("idle", None, None, None)
    assert (run.state, run.agent, run.session, run.session_used) == ("working", None, "s1", True)
    assert not is_waiting(world, run)
    assert world.questions["q1"].is_open


def test_what_a_parked_step_used_is_counted():
    world = ended(needing_input())
    assert (world.runs["1.1"].cost_usd, world.agents["A"].input_tokens) == (0.5, 10)


def test_an_answer_that_comes_before_the_step_ends_is_what_the_next_step_gets():
    world = with_changes(
        needing_input(), run_ask=Ask.ANSWER, run_notes="The answer: the first", run_question=""
    )
    world = ended(world)
    run = world.runs["1.1"]
    assert (run.ask, run.notes, is_waiting(world, run)) == (
        Ask.ANSWER,
        "The answer: the first",
        True,
    )


def test_a_session_that_is_gone_when_its_answer_comes_is_followed_by_one_that_is_told_all():
    world = under_way(run_ask=Ask.ANSWER, run_notes="The answer: x", run_session_used=True)
    unknown = StepError(kind=ErrorKind.SESSION_UNKNOWN, message="no such session")
    run = ended(world, StepOutcome(session="s1", error=unknown)).runs["1.1"]
    assert (run.ask, run.notes, run.session) == (Ask.PARTIAL, "The answer: x", "")


def test_a_question_is_withdrawn_as_soon_as_its_run_is_over():
    world = with_changes(ended(needing_input()), run_state="failed")
    world = after(world, decide(world, Clock(50.0), rules=RULES))
    assert (world.questions["q1"].state, world.runs["1.1"].question) == ("withdrawn", "")


def test_a_question_of_a_live_run_stays_however_long_it_takes():
    world = with_changes(ended(needing_input()), task_state="in_progress")
    assert decide(world, Clock(1e9), rules=RULES) == []


def test_a_new_step_starts_without_the_signal_of_another():
    world = under_way("complete", "old", run_stepping=False)
    world = after(world, step_started(world, world.runs["1.1"], epoch=2, session="s1", at=30.0))
    assert (world.runs["1.1"].signal, world.runs["1.1"].signal_notes) == ("", "")


def test_who_resets_after_a_crash_still_acts_on_what_a_step_had_said():
    rules = Rules(reset_on_recovery=True)
    world = under_way("complete", task_written="in_progress")
    assert plan(world, Clock(50.0), rules=rules, epoch=2) == [Step(subject="1.1")]
    unsaid = under_way(task_written="in_progress")
    assert plan(unsaid, Clock(50.0), rules=rules, epoch=2) == [Recover(subject="1.1")]


# Leave to use a tool


def asking_for_leave(**changes):
    leave = Question(
        id="q2", task="1", run="1.1", role="worker", question="May it?", about=About.PERMISSION
    )
    return with_rows(under_way(**changes), leave)


@pytest.mark.parametrize("outcome", [FINE, CRASHED])
def test_nobody_waits_for_leave_once_the_step_has_ended(outcome):
    assert ended(asking_for_leave(), outcome).questions["q2"].state == "withdrawn"


def test_the_next_attempt_asks_for_leave_itself():
    world = asking_for_leave()
    world = after(world, step_started(world, world.runs["1.1"], epoch=2, session="s1", at=30.0))
    assert world.questions["q2"].state == "withdrawn"


def test_leave_is_not_asked_for_once_a_terminal_took_the_run_over():
    world = with_changes(asking_for_leave(), run_stepping=False, run_agent=None)
    world = replace(world, terminals={"1.1": Terminal(id="1.1", task="1")})
    world = after(world, decide(world, Clock(50.0), rules=RULES))
    assert world.questions["q2"].state == "withdrawn"


def test_leave_that_was_given_and_what_others_ask_for_stays_as_it_is():
    world = asking_for_leave()
    given_leave = replace(world.questions["q2"], id="q3", state="answered", answer="yes")
    of_another = replace(world.questions["q2"], id="q4", run="2.1")
    world = ended(with_rows(world, given_leave, of_another))
    assert [q.state for q in world.questions.values()] == ["withdrawn", "answered", "open"]


# Messages


def message(id_, *, at=1.0, state="queued", task="1"):
    return Message(id=id_, task=task, sender="ann", text=f"text of {id_}", at=at, state=state)


def test_a_message_is_given_with_the_next_step_and_read_when_that_ends_well():
    world = with_rows(holding("working"), message("m1"))
    world = after(world, step_started(world, world.runs["1.1"], epoch=1, session="s1", at=10.0))
    assert (world.messages["m1"].state, world.messages["m1"].step) == ("given", "1.1/1/1")
    assert messages_for(world, "1") == [world.messages["m1"]]
    world = ended(world)
    assert (world.messages["m1"].state, messages_for(world, "1")) == ("read", [])


def test_a_message_that_is_read_is_never_given_again():
    world = with_rows(holding("working"), message("m1", state="read"))
    started = after(world, step_started(world, world.runs["1.1"], epoch=1, session="s1", at=10.0))
    assert started.messages == world.messages
    assert ended(started).messages == world.messages


@pytest.mark.parametrize("kind", ErrorKind)
def test_a_step_that_fails_in_any_way_has_its_messages_given_again(kind):
    world = with_rows(under_way(), message("m1", state="given"))
    failed = StepOutcome(session="s1", error=StepError(kind=kind, message="it broke"))
    world = ended(world, failed)
    assert [m.id for m in messages_for(world, "1")] == ["m1"]


@pytest.mark.parametrize("signal", ["complete", "partially-complete", "needs-user-input"])
def test_a_step_that_signalled_has_read_its_messages(signal):
    world = with_rows(under_way(signal), message("m1", state="given"))
    assert ended(world, CRASHED).messages["m1"].state == "read"


def test_what_comes_in_during_a_step_and_is_not_fetched_waits_for_the_next():
    world = ended(with_rows(under_way(), message("m1")))
    assert world.messages["m1"].state == "queued"


def test_messages_come_oldest_first_and_each_task_has_its_own():
    rows = [message("m1", at=3.0), message("m2", at=1.0), message("m3", task="2")]
    assert [m.id for m in messages_for(given(*rows), "1")] == ["m2", "m1"]
