"""Which kind of agent a slot has: followed, set, dismissed, not configured, not installed."""

from dataclasses import replace

import pytest

from crew.domain.agents.agent_kinds import left_out, needs
from crew.domain.clock import Clock
from crew.domain.kernel.errors import Conflict, NotFound, NotInstalled
from crew.domain.plan import decide
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.agent import Agent
from crew.domain.rows.task import Task
from crew.domain.rules import Rules
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.world import World
from domain.scenes import after, given, holding, queued

IDLE = Agent(id="A", agent_kind="claude")
MINE = Rules(default_kind="mine", providers={"claude": "claude", "mine": "mine"})
NO_CLAUDE = replace(MINE, default_kind="claude", missing={"claude": "claude"})
TODO = Task(id="1", state="todo", written="todo", target="main")


def ask(world, verb, rules=MINE, **args):
    found = answer(world, Request(verb=verb, args=args), rules=rules, at=50.0)
    return found.reply, after(world, found.facts)


def settled(world, rules=MINE, *, scope=EVERYTHING):
    while facts := decide(world, Clock(50.0), rules=rules, scope=scope):
        world = after(world, facts)
    return world


# a slot follows the default


def test_an_idle_agent_follows_the_default_kind_before_it_takes_a_task():
    world = settled(given(IDLE, TODO))
    assert world.agents["A"].agent_kind == "mine"
    assert world.runs["1.1"].agent_kind == "mine"


def test_a_crew_that_takes_no_work_follows_the_default_too():
    assert settled(given(IDLE), scope=Scope(takes_work=False)).agents["A"].agent_kind == "mine"


def test_a_kind_that_was_chosen_stays():
    world = settled(given(replace(IDLE, kind_chosen=True), TODO))
    assert world.agents["A"].agent_kind == "claude"


@pytest.mark.parametrize("state", ["ready", "working", "done", "stuck"])
def test_an_agent_keeps_its_kind_in_the_middle_of_a_task(state):
    assert settled(holding(state), scope=Scope(takes_work=False)).agents["A"].agent_kind == "claude"


def test_a_task_that_is_assigned_by_hand_is_worked_on_by_the_kind_that_holds_now():
    _, world = ask(given(IDLE, TODO), "assign", agent="A", task="1")
    assert world.runs["1.1"].agent_kind == world.agents["A"].agent_kind == "mine"


def test_spawn_keeps_whether_the_kind_was_chosen():
    _, world = ask(World(), "spawn", kind="claude", name="Ann", chosen=True)
    assert world.agents["Ann"].kind_chosen
    _, world = ask(World(), "spawn", kind="claude", count=1)
    assert not world.agents["A"].kind_chosen


# agents set


@pytest.mark.parametrize("world", [given(IDLE), holding("working"), holding("stuck")])
def test_a_kind_is_set_for_the_next_task(world):
    _, later = ask(world, "set_kind", agent="A", kind="codex")
    assert (later.agents["A"].agent_kind, later.agents["A"].kind_chosen) == ("codex", True)
    assert later.runs == world.runs


# dismiss


def test_a_dismissed_agent_is_no_agent_any_more():
    _, world = ask(given(IDLE, TODO), "dismiss", agent="A")
    assert world.crew == {}
    assert settled(world).runs == {}
    for verb in ("assign", "kill", "cleanup", "dismiss", "set_kind"):
        with pytest.raises(NotFound) as caught:
            ask(world, verb, agent="A", task="1", kind="mine")
        assert "`crew spawn`" in caught.value.hint
    with pytest.raises(NotFound):
        ask(world, "retry", subject="A")


@pytest.mark.parametrize("state", ["ready", "working", "done", "stuck"])
def test_dismiss_refuses_an_agent_that_has_a_task(state):
    with pytest.raises(Conflict) as caught:
        ask(holding(state), "dismiss", agent="A")
    assert "task 1" in caught.value.message
    assert "`crew kill A`" in caught.value.hint


def test_dismiss_refuses_an_agent_that_is_being_killed():
    with pytest.raises(Conflict):
        ask(given(replace(IDLE, killing=True)), "dismiss", agent="A")


def test_the_name_of_a_dismissed_agent_may_be_used_again_by_a_new_one():
    spent = replace(IDLE, cost_usd=3.0, input_tokens=7, started_at=1.0, kind_chosen=True)
    _, world = ask(given(spent), "dismiss", agent="A")
    for args in ({"name": "A"}, {"count": 1}, {"at_least": 1}):
        names, again = ask(world, "spawn", kind="mine", **args)
        assert names == ["A"]
        assert again.agents["A"] == Agent(id="A", agent_kind="mine", started_at=50.0)


# kinds that cannot be used


def test_a_task_stays_to_do_while_the_program_of_its_agent_is_missing():
    assert settled(given(IDLE, TODO), NO_CLAUDE).tasks["1"].state == "todo"
    assert settled(given(IDLE, TODO), replace(NO_CLAUDE, missing={})).runs


def test_an_agent_of_an_installed_kind_takes_what_another_cannot():
    other = Agent(id="B", agent_kind="mine", kind_chosen=True)
    world = settled(given(IDLE, other, TODO), NO_CLAUDE)
    assert world.runs["1.1"].agent == "B"


def test_a_task_that_wants_an_installed_kind_goes_on():
    world = settled(given(IDLE, replace(TODO, wants_agent="mine")), NO_CLAUDE)
    assert world.runs["1.1"].agent_kind == "mine"


@pytest.mark.parametrize("verb", ["assign", "start"])
def test_what_cannot_be_started_is_refused_with_two_ways_out(verb):
    with pytest.raises(NotInstalled) as caught:
        ask(given(IDLE, TODO), verb, NO_CLAUDE, agent="A", task="1", default_kind="claude")
    assert caught.value.exit_code == 1
    assert "claude is not installed" in caught.value.message
    assert caught.value.hint.startswith("install claude, or choose another agent: `crew ")


@pytest.mark.parametrize("verb", ["assign", "start"])
def test_a_kind_that_is_not_configured_any_more_is_refused_with_what_to_do(verb):
    gone = Agent(id="A", agent_kind="old", kind_chosen=True)
    with pytest.raises(NotFound) as caught:
        ask(given(gone, TODO), verb, agent="A", task="1", default_kind="old")
    assert "'old'" in caught.value.message
    assert "[agents.old]" in caught.value.hint


def test_the_needs_of_a_crew_name_slots_and_tasks():
    chosen = Agent(id="B", agent_kind="codex", kind_chosen=True)
    wanting = replace(TODO, id="2", wants_agent="gemini")
    merged = replace(TODO, id="3", wants_agent="opencode", state="merged")
    found = {need.kind: need for need in needs(given(IDLE, chosen, TODO, wanting, merged), MINE)}
    assert set(found) == {"mine", "codex", "gemini"}
    assert (found["mine"].agents, found["codex"].agents) == (("A",), ("B",))
    assert found["gemini"].tasks == ("2",)


def test_what_is_under_way_needs_the_kind_that_began_it():
    assert {need.kind for need in needs(holding("working"), MINE)} == {"claude"}


def test_a_run_that_waits_for_a_slot_needs_the_kind_that_began_it():
    waiting = replace(holding("working").runs["1.1"], agent=None)
    (need,) = needs(given(waiting), MINE)
    assert (need.kind, need.tasks) == ("claude", (waiting.task,))


def test_a_crew_is_idle_for_want_of_a_program_only_if_nothing_else_could_be_done():
    wanting = replace(TODO, id="2", wants_agent="mine")
    assert left_out(given(IDLE, TODO), NO_CLAUDE).is_all
    assert not left_out(given(IDLE, TODO, wanting), NO_CLAUDE).is_all
    assert not left_out(given(IDLE, TODO, *queued("3")), NO_CLAUDE).is_all
    assert left_out(given(IDLE, TODO), MINE).needs == ()


def test_the_agents_that_are_about_to_be_made_count_among_the_needs():
    assert left_out(given(TODO), NO_CLAUDE, new_agents=3).is_all
    assert not left_out(given(TODO), NO_CLAUDE).is_all
