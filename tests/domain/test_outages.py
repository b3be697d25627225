"""An agent kind that fails until a person acts is paused as a whole, and its tasks wait."""

import math
from dataclasses import replace

import pytest

from crew.domain.clock import Clock
from crew.domain.commands import Check, Step
from crew.domain.kernel.errors import Conflict
from crew.domain.lead_choice import lead_of
from crew.domain.plan import decide, plan
from crew.domain.provider_limits import all_retried, opens_at, paused, served
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.agent import Agent
from crew.domain.rows.provider import OUTAGE, Outage, Provider
from crew.domain.rows.run import Run
from crew.domain.rows.step import LASTING, ErrorKind, StepError, StepOutcome, Usage
from crew.domain.rows.task import Task
from crew.domain.rules import Rules
from crew.domain.runs.step_outcomes import step_ended, step_started
from crew.domain.runs.verdicts import Review, Verdict, review_ended, review_waits
from domain.contract import MachineContract
from domain.rooms import Room
from domain.scenes import after, given, holding, waits
from domain.test_provider import rows

RULES = Rules(providers={"claude": "claude", "judge": "claude", "codex": "codex"})
LOGIN = StepError(kind=ErrorKind.AUTH, message="wrong key", remedy="log in, then retry")
LIMIT = StepError(kind=ErrorKind.RATE_LIMIT, message="slow down", reset_at=500.0)


class TestOutageMachine(MachineContract):
    machine = OUTAGE
    states = ("open", "over")
    seed = (
        ("open", "over", "retried"),
        ("open", "over", "served"),
        ("open", "over", "installed"),
        ("over", "open", "failed"),
    )
    rests = ("over",)
    final = ()


def failed(kind):
    return StepOutcome(session="s1", error=StepError(kind=kind, message="it broke"))


def step(world, outcome, at=20.0, run="1.1"):
    world = after(world, step_started(world, world.runs[run], epoch=1, session="s1", at=at))
    lead = lead_of(world, world.runs[run])
    return after(world, step_ended(world, world.runs[run], lead, outcome, rules=RULES, at=at))


def started(world, now=100.0):
    facts = decide(world, Clock(now), rules=RULES)
    return [fact.subject for fact in facts if fact.trigger == "started"]


@pytest.mark.parametrize("kind", sorted(LASTING))
def test_an_error_that_no_wait_mends_pauses_the_kind_frees_the_agent_and_harms_no_task(kind):
    world = step(holding("working", agent_error_count=2), failed(kind))
    agent, run, outage = world.agents["A"], world.runs["1.1"], world.outages["claude"]
    assert (outage.state, outage.cause, outage.reason) == ("open", kind, "it broke")
    assert "`crew retry claude`" in outage.remedy
    assert (agent.state, agent.task, agent.error_count, agent.retry_at) == ("idle", None, 0, None)
    assert (run.state, run.agent, run.step, run.stepping) == ("working", None, 0, False)
    assert world.tasks["1"].state == "in_progress"


def test_nothing_starts_or_is_waited_for_during_an_outage_and_other_kinds_continue():
    broken = Outage(id="claude", reason="wrong key")
    agents = [Agent(id="A", agent_kind="claude"), Agent(id="B", agent_kind="codex")]
    tasks = [Task(id="1", written="todo"), Task(id="2", written="todo", wants_agent="codex")]
    world = given(*agents, *tasks, broken)
    assert started(world) == ["2"]
    assert waits(given(agents[0], tasks[0], broken), 100.0, rules=RULES) == {}
    held = given(*rows(holding("working", task_written="in_progress")), broken)
    assert plan(held, Clock(1.0), rules=RULES) == []
    mended = after(held, all_retried(held, at=1.0))
    assert plan(mended, Clock(1.0), rules=RULES) == [Step(subject="1.1")]


def test_steps_that_fail_beside_each_other_open_one_outage():
    world = given(*after(given(), paused(given(), "claude", LOGIN, RULES, at=5.0)).outages.values())
    assert paused(world, "claude", LOGIN, RULES, at=6.0) == []
    assert world.outages["claude"].remedy == "log in, then retry"


def test_an_outage_pauses_its_kind_alone_although_others_have_the_same_provider():
    world = given(Outage(id="claude"))
    assert opens_at(world, "claude", RULES) == math.inf
    assert opens_at(world, "judge", RULES) is None


def test_a_retry_by_the_name_of_the_kind_ends_the_outage_and_a_new_failure_opens_it_again():
    world = given(Outage(id="claude", reason="wrong key", since=1.0))
    request = Request(verb="retry", args={"subject": "claude"})
    facts = answer(world, request, rules=RULES, at=7.0).facts
    assert [(fact.kind, fact.trigger) for fact in facts] == [("outage", "retried")]
    over = after(world, list(facts))
    with pytest.raises(Conflict):
        answer(over, Request(verb="retry", args={"subject": "claude"}), rules=RULES, at=8.0)
    again = after(over, paused(over, "claude", LOGIN, RULES, at=9.0)).outages["claude"]
    assert (again.state, again.since, again.reason) == ("open", 9.0, "wrong key")


def test_a_step_that_went_well_ends_the_outage_of_its_kind_only():
    world = given(Outage(id="claude"), Outage(id="codex"))
    world = after(world, served(world, "claude", RULES, at=3.0))
    assert [one.state for one in world.outages.values()] == ["over", "open"]


def test_a_member_of_a_channel_waits_for_its_kind_and_keeps_its_turn():
    room = Room(driven=("pm",), topic="hello")
    room.speaks("pm", error="auth")
    assert (room.states["pm"], room.member("pm").errors, room.due) == ("active", 0, [])
    assert room.texts.count("⚠️ pm: a auth") == 1
    room.record(all_retried(room.world, at=room.now))
    assert room.due == ["turn room/pm"]


# Reviewers


REVIEWED = Rules(providers=RULES.providers, reviewers=("judge",), min_reviews=1)


def in_review():
    return holding("done", task_written="in_progress")


COST = Usage(input_tokens=5, cost_usd=0.5)


def review(world, error=None, verdict=None, usage=COST):
    found = Review(reviewer="judge", error=error, verdict=verdict, usage=usage)
    return after(world, review_ended(world, world.runs["1.1"], found, rules=REVIEWED, at=20.0))


def parked(world):
    return after(world, review_waits(world, world.runs["1.1"], at=20.0))


def test_the_rate_limit_of_a_reviewer_pauses_its_provider_and_the_work_waits_for_it():
    world = parked(review(in_review(), error=LIMIT))
    agent, run = world.agents["A"], world.runs["1.1"]
    assert world.providers["claude"].next_at == 500.0
    assert (agent.state, agent.task, agent.error_count) == ("idle", None, 0)
    assert (run.state, run.agent, world.tasks["1"].state) == ("reviewing", None, "in_progress")
    assert decide(world, Clock(499.0), rules=REVIEWED) == []
    world = after(world, decide(world, Clock(500.0), rules=REVIEWED))
    assert plan(world, Clock(500.0), rules=REVIEWED) == [Check(subject="1.1")]


def test_work_waits_for_a_reviewer_that_is_not_logged_in_until_a_person_retries():
    world = parked(review(in_review(), error=LOGIN))
    assert decide(world, Clock(1e9), rules=REVIEWED) == []
    world = after(world, all_retried(world, at=30.0))
    assert [f.trigger for f in decide(world, Clock(31.0), rules=REVIEWED)][-1] == "to_check"


def test_a_run_in_its_review_does_not_wait_for_the_provider_of_its_worker():
    run = Run(id="1.1", task="1", agent_kind="codex", state="reviewing")
    task = Task(id="1", state="in_progress", run="1.1")
    limit = Provider(id="codex", state="paused", next_at=500.0)
    world = given(Agent(id="A", agent_kind="codex"), run, task, limit)
    assert next(f.trigger for f in decide(world, Clock(1.0), rules=REVIEWED)) == "resumed"


def test_a_review_is_counted_for_its_run_and_for_the_agent_that_holds_it():
    passed = Verdict(commit="c1", reviewer="judge", passed=True)
    world = review(review(in_review(), verdict=passed), error=LOGIN)
    for row in (world.agents["A"], world.runs["1.1"]):
        assert (row.input_tokens, row.cost_usd) == (10, 1.0)
    unknown = review(in_review(), verdict=passed, usage=Usage(cost_usd=None))
    assert unknown.runs["1.1"].cost_usd is None
    assert unknown.runs["1.1"].verdicts == (("c1", "judge", True),)


def test_a_review_that_a_person_asked_for_is_counted_too():
    usage = {"input_tokens": 7, "output_tokens": 1, "cost_usd": None}
    request = Request(verb="reviewed", args={"task": "1", "reviewer": "judge", "usage": usage})
    world = in_review()
    run = after(world, list(answer(world, request, rules=RULES, at=1.0).facts)).runs["1.1"]
    assert (run.input_tokens, run.cost_usd, run.verdicts) == (7, None, ())


GONE = replace(RULES, missing={"claude": "claude-bin"})


def test_a_program_that_is_gone_pauses_its_kind_as_soon_as_work_waits_for_it():
    idle = given(Agent(id="A", agent_kind="claude"))
    assert decide(idle, Clock(9.0), rules=GONE) == []
    world = given(Agent(id="A", agent_kind="claude"), Task(id="1"))
    now = after(world, decide(world, Clock(9.0), rules=GONE))
    outage = now.outages["claude"]
    assert (outage.is_open, outage.reason) == (True, "claude-bin is not installed")
    assert "claude-bin" in outage.remedy
    assert decide(now, Clock(9.0), rules=GONE) == []
    back = after(now, decide(now, Clock(10.0), rules=RULES))
    assert not back.outages["claude"].is_open
    assert [fact.trigger for fact in decide(back, Clock(10.0), rules=RULES)][:1] == ["started"]


def test_an_agent_whose_program_is_there_takes_the_work_of_one_whose_program_is_gone():
    agents = [Agent(id="A", agent_kind="claude"), Agent(id="B", agent_kind="codex")]
    world = given(*agents, Task(id="1"))
    facts = decide(world, Clock(9.0), rules=GONE)
    assert [(fact.kind, fact.subject) for fact in facts if fact.kind in {"agent", "outage"}] == [
        ("agent", "B")
    ]


def test_an_outage_that_a_step_found_waits_for_a_person_although_the_program_is_there():
    world = step(holding("working"), failed(ErrorKind.NOT_INSTALLED))
    assert world.outages["claude"].is_open
    facts = decide(world, Clock(99.0), rules=RULES)
    assert "installed" not in [fact.trigger for fact in facts]
