"""A CLI asks during its step: the step waits for a while, the run as long as it takes."""

import pytest

from crew.domain.clock import Clock
from crew.domain.lead_choice import lead_of
from crew.domain.plan import decide, plan
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.message import A_PERSON
from crew.domain.rows.question import About
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome
from crew.domain.rules import Rules
from crew.domain.runs.questions import (
    LiveQuestion,
    answer_taken,
    answered_meanwhile,
    asked_live,
    permission_to,
    put_off,
)
from crew.domain.runs.run_holder import is_waiting
from crew.domain.runs.step_outcomes import step_ended, step_started
from crew.domain.world import apply_all
from domain.scenes import RULES, after, holding

COLOUR = LiveQuestion(question="Which colour?", context="Red: warm", choices=("Red", "Blue"))
LEAVE = permission_to("Bash", "rm -r x")
KILLED = StepOutcome(session="s", error=StepError(kind=ErrorKind.CRASHED, message="killed"))


def stepping(**changes):
    return holding("working", run_stepping=True, run_step=1, run_session="s", **changes)


def asked(world, what=COLOUR):
    question, facts = asked_live(world, world.runs["1.1"], what, at=10.0)
    return question, after(world, facts)


def answered(world, text, question="q1"):
    request = Request(verb="answer", args={"question": question, "text": text})
    return apply_all(world, answer(world, request, rules=RULES, at=20.0).facts)


def ended(world, outcome):
    run = world.runs["1.1"]
    return after(world, step_ended(world, run, lead_of(world, run), outcome, rules=RULES, at=30.0))


@pytest.mark.parametrize(
    ("text", "choice"), [("2", "Blue"), ("blue", "Blue"), ("green", "green"), ("3", "3")]
)
def test_an_answer_may_be_a_choice_by_number_or_words_or_another_text(text, choice):
    _, world = asked(stepping())
    assert answered(world, text).questions["q1"].answer == choice


def test_an_answer_in_time_goes_to_the_step_and_into_no_prompt():
    question, world = asked(stepping())
    world = answered(world, "blue")
    run = world.runs["1.1"]
    assert (run.stepping, run.ask, run.notes, run.question) == (True, "first", "", "q1")
    world = after(world, answer_taken(world, question, at=21.0))
    assert (world.runs["1.1"].question, world.questions["q1"].taken) == ("", True)
    assert put_off(world, world.runs["1.1"], at=22.0) == []


@pytest.mark.parametrize(
    ("what", "text", "sent"),
    [
        (LEAVE, "no, move it away", ["no, move it away"]),
        (LEAVE, "No.", []),
        (LEAVE, "ok", []),
        (LEAVE, "", []),
        (COLOUR, "green, like grass", []),
    ],
)
def test_words_beside_a_yes_or_no_become_a_message_to_the_step(what, text, sent):
    _, world = asked(stepping(), what)
    world = answered(world, text)
    assert [(one.task, one.sender, one.text) for one in world.messages.values()] == [
        ("1", A_PERSON, words) for words in sent
    ]


@pytest.mark.parametrize("what", [COLOUR, LEAVE])
@pytest.mark.parametrize(
    "outcome",
    [
        StepOutcome(session="s", error=StepError(kind=ErrorKind.STALLED, message="10 m")),
        StepOutcome(session="s", error=StepError(kind=ErrorKind.TIMEOUT, message="30 m")),
        StepOutcome(session="s", error=StepError(kind=ErrorKind.CRASHED, message="killed")),
    ],
)
def test_a_step_that_ends_unanswered_leaves_the_question_open_and_its_agent_free(what, outcome):
    _, world = asked(stepping(), what)
    world = ended(world, outcome)
    run, agent = world.runs["1.1"], world.agents["A"]
    assert (world.questions["q1"].state, agent.state, agent.error_count) == ("open", "idle", 0)
    assert (run.question, run.session, run.stepping) == ("q1", "s", False)
    assert not is_waiting(world, run)
    weeks_later = Clock(2_000_000.0)
    assert decide(world, weeks_later, rules=RULES) == []


def test_a_late_answer_resumes_the_session_with_the_question_in_its_prompt():
    _, world = asked(stepping(), LEAVE)
    world = answered(ended(world, KILLED), "yes")
    run = world.runs["1.1"]
    assert (run.ask, run.question) == ("answer", "")
    assert "rm -r x" in run.notes
    assert "> yes" in run.notes
    assert is_waiting(world, run)


def test_a_run_that_is_put_off_waits_although_its_step_ends_in_order():
    _, world = asked(stepping())
    world = after(world, put_off(world, world.runs["1.1"], at=15.0))
    world = ended(world, StepOutcome(session="s"))
    assert (world.questions["q1"].state, world.agents["A"].state) == ("open", "idle")
    assert "blue" in answered(world, "blue").runs["1.1"].notes.lower()


def test_a_step_that_goes_well_without_its_answer_asks_no_more():
    _, world = asked(stepping())
    world = ended(world, StepOutcome(session="s", done=True))
    run = world.runs["1.1"]
    assert (world.questions["q1"].state, run.question, run.state) == ("withdrawn", "", "reviewing")


def test_what_was_answered_late_is_not_asked_again_and_counts_once():
    question, world = asked(stepping(), LEAVE)
    world = answered(ended(world, KILLED), "yes")
    known, facts = asked_live(world, world.runs["1.1"], LEAVE, at=40.0)
    assert (known.id, facts) == (question.id, [])
    world = after(world, answer_taken(world, known, at=41.0))
    again, world = asked(world, LEAVE)
    assert (again.id, again.is_open) == ("q2", True)


def test_another_command_is_another_permission():
    _, world = asked(stepping(), LEAVE)
    world = answered(ended(world, KILLED), "yes")
    other, _ = asked(world, permission_to("Bash", "rm -r y"))
    assert other.is_open


def test_the_step_of_a_killed_runner_is_not_repeated_while_its_question_is_open():
    _, world = asked(stepping(run_epoch=1), LEAVE)
    reset = Rules(reset_on_recovery=True)
    commands = plan(world, Clock(50.0), rules=reset, epoch=2)
    assert [type(one).__name__ for one in commands if one.subject == "1.1"] == ["Step"]


def test_an_answer_without_a_runner_is_in_the_prompt_of_the_next_one():
    _, world = asked(stepping(), LEAVE)
    world = answered(world, "no, use git clean")
    world = after(world, answered_meanwhile(world, world.runs["1.1"], at=30.0))
    run = world.runs["1.1"]
    assert (run.ask, run.question) == ("answer", "")
    assert "> no, use git clean" in run.notes


def test_an_answer_that_its_step_did_not_get_before_it_failed_is_in_the_next_prompt():
    _, world = asked(stepping(), LEAVE)
    world = ended(answered(world, "yes"), KILLED)
    world = after(world, decide(world, Clock(50.0), rules=RULES))
    run = world.runs["1.1"]
    assert (run.ask, run.question, "> yes" in run.notes) == ("answer", "", True)
    assert decide(world, Clock(50.0), rules=RULES) == []


def test_of_several_questions_the_run_waits_for_the_first_and_the_others_are_asked_again():
    _, world = asked(stepping(), LEAVE)
    _, world = asked(world, permission_to("Bash", "rm -r y"))
    world = ended(world, KILLED)
    assert [one.state for one in world.questions.values()] == ["open", "withdrawn"]


def test_a_step_that_is_tried_again_withdraws_what_its_last_attempt_asked():
    _, world = asked(stepping(run_question="q0"), LEAVE)  # the run waits for another one
    run = world.runs["1.1"]
    world = after(world, step_started(world, run, epoch=2, session="s", at=30.0))
    assert world.questions["q1"].state == "withdrawn"


def test_what_is_asked_for_is_said_in_the_question():
    question, _ = asked(stepping(), LEAVE)
    assert (question.about, question.choices) == (About.PERMISSION, ("yes", "no"))
    assert question.context == "rm -r x"
