"""A provider that says that a limit is reached is paused as a whole, and nobody else is."""

import json
from dataclasses import asdict

import pytest

from crew.domain.clock import Clock
from crew.domain.commands import CommandKind, Step
from crew.domain.kernel.fact import Fact
from crew.domain.lead_choice import LEADS, lead_of
from crew.domain.plan import decide, plan
from crew.domain.rows.agent import Agent
from crew.domain.rows.provider import PROVIDER, Provider
from crew.domain.rows.run import Run
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome
from crew.domain.rows.task import Task
from crew.domain.rules import Rules
from crew.domain.runs.run_holder import is_waiting
from crew.domain.runs.run_outcomes import assigned
from crew.domain.runs.step_outcomes import step_ended, step_started
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.world import TABLES, born, fold
from domain.contract import MachineContract
from domain.scenes import RULES, after, given, holding, waits

SHARED = Rules(providers={"claude": "anthropic", "opus": "anthropic", "codex": "openai"})
FINE = StepOutcome(session="s1")


class TestProviderMachine(MachineContract):
    machine = PROVIDER
    states = ("open", "paused")
    seed = (
        ("open", "paused", "rate_limited"),
        ("paused", "paused", "rate_limited"),
        ("paused", "open", "served"),
    )
    rests = ("open",)
    final = ()


def limited(reset_at, message="try later"):
    error = StepError(kind=ErrorKind.RATE_LIMIT, message=message, reset_at=reset_at)
    return StepOutcome(session="s1", error=error)


def rows(world):
    return [row for kind in TABLES for row in world.rows(kind).values()]


def step(world, outcome, *, rules=SHARED, at=20.0, run="1.1"):
    world = after(world, step_started(world, world.runs[run], epoch=1, session="s1", at=at))
    return after(
        world,
        step_ended(
            world, world.runs[run], lead_of(world, world.runs[run]), outcome, rules=rules, at=at
        ),
    )


def test_a_limit_pauses_the_provider_frees_the_agent_and_is_no_error():
    world = step(holding("working", agent_error_count=2), limited(500.0))
    agent, run, provider = world.agents["A"], world.runs["1.1"], world.providers["anthropic"]
    assert (provider.state, provider.next_at, provider.reason) == ("paused", 500.0, "try later")
    assert (agent.state, agent.task, agent.error_count, agent.retry_at) == ("idle", None, 0, None)
    assert (run.state, run.agent, run.session, run.session_used) == ("working", None, "s1", True)
    assert (is_waiting(world, run), run.step, run.stepping) == (True, 0, False)


def test_the_facts_say_that_the_agent_was_parked_and_by_whom():
    world = holding("working")
    world = after(world, step_started(world, world.runs["1.1"], epoch=1, session="s1", at=10.0))
    facts = step_ended(
        world,
        world.runs["1.1"],
        lead_of(world, world.runs["1.1"]),
        limited(500.0),
        rules=SHARED,
        at=20.0,
    )
    assert [(f.kind, f.trigger) for f in facts] == [
        ("run", "step_ended"),
        ("agent", "parked"),
        ("provider", "rate_limited"),
    ]


def test_a_provider_that_does_not_say_until_when_is_left_alone_for_the_longest_wait():
    assert step(holding("working"), limited(None)).providers["anthropic"].next_at == 80.0


def test_a_limit_that_is_over_already_is_not_waited_for():
    provider = step(holding("working"), limited(5.0)).providers["anthropic"]
    assert provider.next_at == 20.0
    assert Clock(20.0).has_come(provider.opens_at, None)


def test_an_agent_whose_provider_nobody_named_is_its_own():
    assert set(step(holding("working"), limited(500.0), rules=RULES).providers) == {"claude"}


@pytest.mark.parametrize(("second", "until"), [(900.0, 900.0), (300.0, 500.0), (None, 500.0)])
def test_of_two_limits_the_later_end_holds(second, until):
    world = given(*rows(holding("working")), paused(500.0))
    provider = step(world, limited(second, "again")).providers["anthropic"]
    assert (provider.state, provider.next_at, provider.reason) == ("paused", until, "again")


def paused(next_at, id_="anthropic"):
    return Provider(id=id_, state="paused", next_at=next_at, reason="try later")


def test_a_provider_is_shut_until_its_time_and_not_a_moment_longer():
    assert paused(500.0).opens_at == 500.0
    assert not Clock(499.9).has_come(500.0, None)
    assert Clock(500.0).has_come(500.0, None)
    assert Provider(id="anthropic", next_at=500.0).opens_at is None


# Who waits, and who goes on


def todo(*ids, **changes):
    return [Task(id=id_, written="todo", **changes) for id_ in ids]


def idle(*names, kind="claude"):
    return [Agent(id=name, agent_kind=kind) for name in names]


def started(world, now, rules=SHARED, scope=EVERYTHING):
    """The tasks that are given to somebody now."""
    facts = decide(world, Clock(now), rules=rules, scope=scope)
    return [fact.subject for fact in facts if fact.trigger == "started"]


def test_nothing_of_a_paused_provider_starts_before_its_time():
    world = given(*idle("A"), *todo("1"), paused(500.0))
    assert started(world, 499.0) == []
    assert started(world, 500.0) == ["1"]


def test_all_that_a_provider_serves_wait_and_others_go_on():
    tasks = [*todo("1", wants_agent="opus"), *todo("2", wants_agent="codex")]
    world = given(*idle("A", "B"), *tasks, paused(500.0))
    assert started(world, 100.0) == ["2"]


def test_a_run_that_was_parked_waits_for_its_own_provider():
    world = step(holding("working"), limited(500.0))
    assert [f.trigger for f in decide(world, Clock(499.0), rules=SHARED)] == []
    assert [f.trigger for f in decide(world, Clock(500.0), rules=SHARED)] == [
        "resumed",
        "assigned",
        "let_go",
    ]


def test_an_agent_with_a_run_in_its_hands_calls_nobody_who_is_shut():
    world = given(*rows(holding("working")), paused(500.0))
    world = given(*(r for r in rows(world) if r.kind != "task"), *_written(world))
    assert plan(world, Clock(499.0), rules=SHARED) == []
    assert plan(world, Clock(500.0), rules=SHARED) == [Step(subject="1.1")]


def _written(world):
    task = world.tasks["1"]
    return [Task(**{**asdict(task), "written": task.state})]


def test_after_a_limit_runs_come_back_one_after_the_other():
    world = given(*idle("A", "B", "C"), *todo("1", "2", "3"), paused(500.0))
    found = []
    for now in (500.0, 502.0, 504.9, 505.0, 510.0):
        facts = decide(world, Clock(now), rules=SHARED)
        found += [(now, f.subject) for f in facts if f.trigger == "started"]
        world = after(world, facts)
    assert found == [(500.0, "1"), (505.0, "2"), (510.0, "3")]


def test_who_is_assigned_by_hand_does_not_cut_a_pause_short():
    world = given(*idle("A"), *todo("1"), paused(500.0))
    facts = assigned(
        world,
        world.agents["A"],
        world.tasks["1"],
        lead=LEADS.of_task(world, world.tasks["1"].id),
        rules=SHARED,
        at=100.0,
    )
    assert after(world, facts).providers["anthropic"].next_at == 500.0


def test_others_are_not_held_back_while_a_provider_lets_go_one_by_one():
    tasks = [*todo("1", "2"), *todo("3", "4", wants_agent="codex")]
    world = given(*idle("A", "B", "C", "D"), *tasks, paused(500.0))
    assert started(world, 600.0) == ["1", "3", "4"]


def test_a_step_that_went_well_opens_the_provider_for_all():
    world = step(given(*rows(holding("working")), paused(15.0)), FINE, at=20.0)
    provider = world.providers["anthropic"]
    assert (provider.state, provider.reason) == ("open", "")


def test_a_step_from_before_the_limit_that_went_well_opens_nothing():
    world = step(given(*rows(holding("working")), paused(500.0)), FINE, at=20.0)
    assert world.providers["anthropic"].opens_at == 500.0


def test_a_step_of_somebody_else_opens_nothing():
    world = given(*rows(holding("working")), paused(15.0, "openai"))
    assert step(world, FINE).providers["openai"].state == "paused"


def test_the_runner_wakes_up_for_a_paused_provider_if_somebody_waits_for_it():
    run = Run(id="1.1", task="1", agent_kind="claude", state="working")
    task = Task(id="1", state="in_progress", run="1.1")
    begun = given(*idle("A"), run, task, paused(500.0))
    assert waits(begun, 100.0, rules=SHARED) == {CommandKind.RUN: 500.0}
    assert waits(begun, 500.0, rules=SHARED) == {}
    new = given(*idle("A"), *todo("1"), paused(500.0))
    assert waits(new, 100.0, rules=SHARED) == {CommandKind.RUN: 500.0}
    assert waits(given(*idle("A"), paused(500.0)), 100.0, rules=SHARED) == {}


def test_nobody_waits_for_a_provider_with_a_run_that_waits_for_a_person():
    run = Run(id="1.1", task="1", agent_kind="claude", state="working", question="q1")
    world = given(run, Task(id="1", state="in_progress", run="1.1"), paused(500.0))
    assert waits(world, 100.0, rules=SHARED) == {}


def test_a_pause_survives_a_restart():
    world = step(holding("working"), limited(500.0))
    facts = [born(row, "made", at=1.0) for row in rows(holding("working"))]
    before = fold(facts)
    facts += step_started(before, before.runs["1.1"], epoch=1, session="s1", at=20.0)
    now = fold(facts)
    facts += step_ended(
        now, now.runs["1.1"], lead_of(now, now.runs["1.1"]), limited(500.0), rules=SHARED, at=20.0
    )
    again = fold(Fact(**json.loads(json.dumps(asdict(fact)))) for fact in facts)
    assert again.providers == world.providers
    assert started(again, 499.0) == []


# One task alone


def test_who_runs_one_task_takes_up_no_other():
    alone = Scope(tasks=("2",))
    world = given(*idle("A", "B"), *todo("1", "2", "3"))
    assert started(world, 1.0, scope=alone) == ["2"]


@pytest.mark.parametrize(("only", "steps"), [("1", [Step(subject="1.1")]), ("2", [])])
def test_who_runs_one_task_does_no_step_of_another(only, steps):
    world = holding("working", task_written="in_progress")
    assert plan(world, Clock(1.0), rules=Rules(), scope=Scope(tasks=(only,))) == steps


def test_who_runs_one_task_waits_for_nothing_that_concerns_another():
    """A paused provider, a rest after a kill and a retry of others do not hold it up."""
    others = [*idle("B"), *todo("2", not_before=60.0), paused(500.0)]
    world = given(*rows(holding("working", agent_retry_at=80.0)), *others)
    for tasks, at in (((), 60.0), (("1",), 80.0), (("2",), 60.0)):
        assert waits(world, 50.0, rules=SHARED, scope=Scope(tasks=tasks)) == {CommandKind.RUN: at}
    assert waits(world, 50.0, rules=SHARED, scope=Scope(tasks=("9",))) == {}
    assert waits(world, 90.0, rules=SHARED, scope=Scope(tasks=("1",))) == {CommandKind.RUN: 500.0}
