"""What becomes of a conflict when a person is asked: the question, and each of its choices."""

from dataclasses import replace

import pytest

from crew.domain.agents.manager_board import board
from crew.domain.clock import Clock
from crew.domain.kernel.errors import Conflict, UsageError
from crew.domain.lead_choice import LEADS
from crew.domain.merging.merge_plan import returned
from crew.domain.plan import decide
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.question import About
from crew.domain.rows.run import Ask
from crew.domain.scope import Scope
from domain.scenes import RULES, after, given, queue_of, queued
from refusals import raises_code

ASKING = replace(RULES, conflicts_to_agent=False)


def conflicted(world, task="1"):
    facts = returned(
        world,
        task,
        leads=LEADS,
        ask=Ask.CONFLICT,
        notes="",
        rules=ASKING,
        at=5.0,
        merge_commit="c" * 40,
        merge_paths=("a.txt",),
        merge_notes="both sides",
    )
    return after(world, facts)


@pytest.fixture
def asking():
    return conflicted(given(queue_of(), *queued("1", "2")))


def ask(world, verb, **args):
    return after(
        world, list(answer(world, Request(verb=verb, args=args), rules=ASKING, at=9.0).facts)
    )


def test_a_conflict_asks_with_both_sides_and_the_choices(asking):
    question = asking.questions["q1"]
    assert (question.about, question.task) == (About.CONFLICT, "1")
    assert question.choices == ("agent", "mine", "theirs", "give up")
    assert "conflicts with cccccccccccc, which landed, in a.txt" in question.question
    assert question.context == "both sides"
    task = asking.tasks["1"]
    assert (task.state, task.is_queued, task.awaits_merge) == ("done", False, False)
    assert decide(asking, Clock(6.0), rules=ASKING) == []
    assert "asks q1" in board(asking, LEADS, runner_up=True)[0].why


def test_two_conflicts_ask_two_questions(asking):
    both = conflicted(asking, "2")
    assert [one.task for one in both.questions.values()] == ["1", "2"]


@pytest.mark.parametrize("said", ["mine", " Theirs\n", "give-up", "GIVE UP", "agent"])
def test_a_choice_may_be_written_in_any_way(asking, said):
    assert ask(asking, "answer", question="q1", text=said).questions["q1"].state == "answered"


def test_anything_else_is_refused_with_the_choices(asking):
    with raises_code(UsageError, "invalid_choice") as refused:
        ask(asking, "answer", question="q1", text="ours")
    assert "agent, mine, theirs, give up" in refused.value.hint


@pytest.mark.parametrize("side", ["mine", "theirs"])
def test_a_side_puts_the_task_back_into_the_queue_with_its_commit(asking, side):
    world = ask(asking, "answer", question="q1", text=side)
    task = world.tasks["1"]
    assert (task.is_queued, task.head, task.favours) == (True, "head-1", side)
    assert world.runs["1.1"].question == ""
    with raises_code(Conflict, "question_closed"):
        ask(world, "answer", question="q1", text=side)


def test_the_agent_gets_the_conflict_as_it_would_have_without_a_question(asking):
    world = ask(asking, "answer", question="q1", text="agent")
    run = world.runs["1.1"]
    assert (run.state, run.ask, run.question) == ("working", Ask.CONFLICT, "")
    assert (run.merge_commit, run.merge_head) == ("c" * 40, "head-1")
    assert (run.merge_paths, run.merge_notes) == (("a.txt",), "both sides")
    assert (world.tasks["1"].state, world.tasks["1"].conflict) == ("in_progress", "")


def test_a_task_that_is_given_up_fails_with_the_reason(asking):
    world = ask(asking, "answer", question="q1", text="give up")
    assert world.tasks["1"].state == "error"
    assert "gave it up: it conflicts with cccccccccccc in a.txt" in world.runs["1.1"].error


def test_a_merge_waits_for_the_answer(asking):
    with raises_code(Conflict, "waits_for_answer", "question q1"):
        ask(asking, "merge", task="1")
    assert ask(asking, "go_on", task="1", default_kind="x") == asking


@pytest.mark.parametrize(
    ("verb", "args"), [("close", {}), ("changes", {"notes": "do it otherwise"})]
)
def test_a_task_that_goes_another_way_needs_no_answer(asking, verb, args):
    world = ask(asking, verb, task="1", **args)
    world = after(world, decide(world, Clock(9.0), rules=ASKING, scope=Scope(takes_work=False)))
    assert world.questions["q1"].state == "withdrawn"
    assert world.runs["1.1"].question == ""


def test_more_work_on_a_task_begins_without_a_choice(asking):
    world = ask(asking, "answer", question="q1", text="mine")
    assert ask(world, "changes", task="1", notes="more").tasks["1"].favours == ""
