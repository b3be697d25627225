"""A task goes on from its point, on its terms, however far it is."""

from dataclasses import replace

import pytest

from crew.domain.clock import Clock
from crew.domain.kernel.errors import Conflict, NotFound
from crew.domain.lead_choice import lead_of
from crew.domain.plan import decide
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.agent import Agent
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.task import Task
from crew.domain.rows.terms import read_terms
from crew.domain.runs.next_round import sent_back
from crew.domain.runs.run_holder import is_waiting
from crew.domain.scope import EVERYTHING, Scope
from domain.scenes import RULES, after, at_terminal, given, holding, queued, with_changes
from refusals import raises_code

TERMS = {"reviewers": ["bob"], "max_rounds": 3, "done_word": "READY", "proof": "make e2e"}
KEPT = (("bob",), 3, "READY", "make e2e")


def go_on(world, rules=RULES, scope=EVERYTHING):
    request = Request(verb="go_on", args={"task": "1", "default_kind": "claude"})
    found = answer(world, request, rules=rules, scope=scope, at=50.0)
    return after(world, found.facts), found


def terms_of(run):
    return run.reviewers, run.max_rounds, run.done_word, run.proof


def new_task(**changes):
    return Task(id="1", terms=read_terms(TERMS), wants_agent="codex", **changes)


def failed_run(**changes):
    terms = dict(read_terms({**TERMS, "proof": "make other"}))
    run = Run(id="1.1", task="1", state="failed", agent_kind="codex", model="o3", **terms)
    run = replace(run, session="s-1", session_used=True, round=3)
    task = Task(id="1", state="error", run="1.1", run_count=1)
    return with_changes(given(run, task), **changes)


# Terms


def test_whoever_takes_a_task_up_works_on_its_terms():
    world = given(new_task(), Agent(id="A", agent_kind="claude"))
    world = after(world, decide(world, Clock(50.0), rules=RULES))
    run = world.runs["1.1"]
    assert (run.agent, run.agent_kind, terms_of(run)) == ("A", "codex", KEPT)


def test_a_task_without_terms_leaves_them_to_the_config():
    world = given(Task(id="1"), Agent(id="A", agent_kind="claude"))
    world = after(world, decide(world, Clock(50.0), rules=RULES))
    assert terms_of(world.runs["1.1"]) == (None, RULES.max_rounds, "", "")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ([], "not an object"),
        ({"rounds": 3}, "'rounds' is unknown"),
        ({"max_rounds": 0}, "max_rounds cannot be 0"),
        ({"max_rounds": True}, "max_rounds cannot be True"),
        ({"max_rounds": "3"}, "max_rounds cannot be '3'"),
        ({"proof": ""}, "proof cannot be ''"),
        ({"proof": ["make"]}, "proof cannot be"),
        ({"done_word": " "}, "done_word cannot be ' '"),
        ({"reviewers": "bob"}, "reviewers cannot be 'bob'"),
        ({"reviewers": [""]}, "reviewers cannot be"),
    ],
)
def test_terms_that_cannot_be_read_are_named(wrong, named):
    with pytest.raises(ValueError, match=named):
        read_terms(wrong)


def test_no_reviewers_is_a_term_and_says_that_none_is_asked():
    assert read_terms({"reviewers": []}) == (("reviewers", ()),)
    assert read_terms({}) == ()


# From its point


def test_an_unknown_task_is_refused():
    with pytest.raises(NotFound):
        go_on(given())


def test_a_task_that_has_not_begun_begins_on_its_terms():
    world, found = go_on(given(new_task()))
    run = world.runs["1.1"]
    assert (found.reply, is_waiting(world, run), run.ask, run.agent_kind) == (
        "1.1",
        True,
        "first",
        "codex",
    )
    assert terms_of(run) == KEPT


@pytest.mark.parametrize("state", ["ready", "working", "done"])
def test_what_is_under_way_stays_as_it_is(state):
    world = holding(state)
    after_it, found = go_on(world)
    assert (after_it, found.reply) == (world, "1.1")
    assert go_on(go_on(given(new_task()))[0])[1].facts == ()


def test_a_stuck_agent_tries_again():
    world, _ = go_on(holding("stuck", agent_error_count=5, agent_last_error="no key"))
    assert (world.agents["A"].state, world.runs["1.1"].state) == ("working", "working")


def test_a_task_that_is_done_and_not_in_the_queue_joins_it():
    world = given(*queued("1"))
    assert go_on(world)[1].facts == ()
    waiting = with_changes(world, task_queued_at=None)
    world, _ = go_on(waiting)
    assert world.tasks["1"].is_queued
    assert (world.tasks["1"].state, world.runs["1.1"].state) == ("done", "complete")


@pytest.mark.parametrize("state", ["merged", "closed"])
def test_a_finished_task_stays_finished(state):
    world = given(Task(id="1", state=state, run="1.1"))
    assert go_on(world)[0] == world


def test_what_is_at_a_terminal_is_left_to_it():
    with raises_code(Conflict, "has_terminal", "task 1") as caught:
        go_on(at_terminal())
    assert "`crew attach 1`" in caught.value.hint


@pytest.mark.parametrize("state", ["todo", "in_progress", "error"])
def test_a_failed_run_is_followed_by_one_with_its_session_and_its_terms(state):
    world, found = go_on(failed_run(task_state=state, run_verdicts=(("c", "bob", True),)))
    run = world.runs["1.2"]
    assert (found.reply, world.tasks["1"].state, is_waiting(world, run)) == (
        "1.2",
        "in_progress",
        True,
    )
    assert terms_of(run) == (("bob",), 3, "READY", "make other")
    assert (run.session, run.session_used, run.model, run.agent_kind) == (
        "s-1",
        True,
        "o3",
        "codex",
    )
    assert (run.round, run.verdicts, run.ask) == (1, (("c", "bob", True),), "continue")


@pytest.mark.parametrize(
    ("before", "used", "ask"),
    [
        (Ask.FIRST, True, Ask.CONTINUE),
        (Ask.FIRST, False, Ask.RESUMED),
        (Ask.RESUMED, False, Ask.RESUMED),
        (Ask.CONTINUE, True, Ask.CONTINUE),
        (Ask.CONTINUE, False, Ask.RESUMED),
        (Ask.PARTIAL, False, Ask.PARTIAL),
        (Ask.REVIEW, True, Ask.REVIEW),
        (Ask.CONFLICT, True, Ask.CONFLICT),
    ],
)
def test_a_resumed_run_is_told_what_the_last_one_was_to_be_told_next(before, used, ask):
    changes = {"run_ask": before, "run_session_used": used, "run_notes": "the notes"}
    run = go_on(failed_run(**changes))[0].runs["1.2"]
    assert (run.ask, run.notes) == (ask, "the notes")


def test_a_run_that_gave_up_keeps_the_complaint_for_the_one_that_resumes_it():
    world = holding("done", run_round=20, run_max_rounds=20, run_session_used=True)
    run = world.runs["1.1"]
    world = after(
        world,
        sent_back(
            world, run, lead_of(world, run), ask=Ask.REVIEW, notes="no tests", rules=RULES, at=49.0
        ),
    )
    assert world.runs["1.1"].state == "failed"
    new = go_on(world)[0].runs["1.2"]
    assert (new.ask, new.notes, new.max_rounds) == (Ask.REVIEW, "no tests", 20)


# A runner that is up for single tasks


def test_a_runner_of_single_tasks_has_an_agent_for_each():
    alone = Scope(tasks=("1",))
    world, _ = go_on(given(new_task()), scope=alone)
    assert [agent.agent_kind for agent in world.agents.values()] == ["codex"]
    assert len(go_on(holding("working"), scope=alone)[0].agents) == 1
    free = given(new_task(), Agent(id="B", agent_kind="claude"))
    assert len(go_on(free, scope=alone)[0].agents) == 1
    assert go_on(given(new_task()))[0].agents == {}
