"""A suspicious act is one entry of the inbox for each run and act, and changes nothing else."""

import pytest

from crew.domain.kernel.errors import Conflict
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.question import SUSPICION
from crew.domain.rows.run import Run
from crew.domain.runs.suspicions import (
    CONNECT,
    MOST_COUNTED,
    MOST_HOSTS,
    SuspiciousAct,
    suspected,
    unlisted_host,
)
from crew.domain.world import World, apply_all
from domain.contract import MachineContract
from domain.scenes import RULES, given


class TestSuspicionMachine(MachineContract):
    machine = SUSPICION
    states = ("open", "dismissed")
    seed = (("open", "dismissed", "dismissed"),)
    final = rests = ("dismissed",)


def tried(world: World, *, at: float = 1.0, **values: str) -> World:
    act = SuspiciousAct(**{"act": "crew stop", "run": "1.1", "task": "1", **values})
    return apply_all(world, suspected(world, act, at=at))


def test_one_entry_for_each_run_and_act_with_a_count():
    world = given(Run(id="1.1", task="1"))
    seen = tried(tried(world), at=7.0)
    (one,) = seen.suspicions.values()
    assert (one.id, one.count, one.first_at, one.last_at) == ("s1", 2, 1.0, 7.0)
    others = tried(tried(seen, act="crew answer"), run="2.1", task="2")
    assert [(s.run, s.act) for s in others.suspicions.values()] == [
        ("1.1", "crew stop"),
        ("1.1", "crew answer"),
        ("2.1", "crew stop"),
    ]
    assert others.runs == world.runs


def test_acts_without_a_run_are_told_apart_by_their_task():
    world = tried(tried(tried(World(), run=""), run="", task="2"), run="", task="2")
    assert [(s.task, s.count) for s in world.suspicions.values()] == [("1", 1), ("2", 2)]


def test_an_agent_that_tries_for_ever_is_not_counted_for_ever():
    world = World()
    for _ in range(MOST_COUNTED + 5):
        world = tried(world)
    assert world.suspicions["s1"].count == MOST_COUNTED


def test_long_words_are_cut():
    world = tried(World(), act="x" * 10_000, context="y" * 10_000)
    one = world.suspicions["s1"]
    assert (len(one.act), len(one.context)) == (80, 1_000)
    assert tried(world, act="x" * 10_000).suspicions["s1"].count == 2


def ask(world: World, verb: str, **args: object) -> World:
    request = Request(verb=verb, args=args)
    return apply_all(world, answer(world, request, rules=RULES, at=9.0).facts)


def test_an_answer_dismisses_it_for_good():
    world = ask(World(), "suspect", act="crew stop", run="1.1", task="1", role="worker")
    over = ask(world, "answer", question="s1", text="I have seen it")
    one = over.suspicions["s1"]
    assert (one.state, one.answer) == ("dismissed", "I have seen it")
    with pytest.raises(Conflict):
        ask(over, "answer", question="s1", text="again")
    again = tried(over)
    assert (again.suspicions["s1"].state, again.suspicions["s1"].count) == ("dismissed", 2)


def wanted(world: World, host: str, **values: str) -> World:
    act = SuspiciousAct(**{"act": f"{CONNECT}{host}", "run": "1.1", "task": "1", **values})
    return apply_all(world, unlisted_host(world, act, at=1.0))


def test_a_host_that_is_not_listed_is_recorded_once_for_each_task():
    world = tried(World())
    for run in ("1.1", "1.1", "1.2"):
        world = wanted(world, "a.org:443", run=run)
    world = wanted(wanted(world, "b.org:443"), "a.org:443", task="2", run="2.1")
    assert [(one.task, one.act, one.count) for one in world.suspicions.values()] == [
        ("1", "crew stop", 1),
        ("1", "to connect to a.org:443", 1),
        ("1", "to connect to b.org:443", 1),
        ("2", "to connect to a.org:443", 1),
    ]


def test_a_program_that_tries_many_hosts_does_not_fill_the_inbox():
    world = wanted(World(), "other.org:443", task="2")
    for number in range(MOST_HOSTS + 5):
        world = wanted(world, f"{number}.org:443")
    assert len(world.suspicions) == MOST_HOSTS + 1
    long = wanted(World(), f"{'x' * 200}.org:443")
    assert wanted(long, f"{'x' * 200}.org:443") == long
