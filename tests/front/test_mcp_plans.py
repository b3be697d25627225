"""A role that plans hands in its steps over MCP; whatever is wrong with them is told at once."""

import json

import pytest

from front.conftest import CliScene
from front.mcp_scene import add_waiting_agent, running_crew, serving, waiting_step
from front.quest_scene import questing, step

WAYS = ("by_http", "by_stdio")


@pytest.fixture
def planner(scene: CliScene):
    """The step of a role that plans, which waits."""
    questing(scene, {})
    add_waiting_agent(scene)
    scene.ok("quest", "new", "Request", "--workflow", "small")
    with serving(scene, agents=1):
        yield waiting_step(scene)


def planned(scene: CliScene) -> list[str]:
    return [one["id"] for one in scene.ok("quest", "show", "1", "--json").json["steps"]]


@pytest.mark.parametrize("way", WAYS)
def test_the_last_plan_counts(planner, way):
    call = getattr(planner, way)
    heard = call("plan-steps", steps=[step("a"), step("b", "a")])
    assert (heard.text, heard.refused) == ("2 items are planned", False)
    assert planned(planner.scene) == ["a", "b"]
    assert not call("plan-steps", steps=[step("c"), step("a")]).refused
    assert planned(planner.scene) == ["c", "a"]
    quest = json.loads(call("get-quest").text)
    assert (quest["request"], [one["id"] for one in quest["steps"]]) == ("Request", ["c", "a"])


FAULTS = [
    ([], "a list with at least one item"),
    ("a, b", "must be an array"),
    ([5], "item 1 is not an object"),
    ([step("a"), step("a")], "the id 'a' is used 2 times"),
    ([step("a", "b"), step("b", "a")], "in a cycle: a → b → a"),
    ([step("a", "z")], "item a waits for 'z', which is not in the plan"),
    ([step("a") | {"colour": "red"}], "unknown fields: colour"),
    ([step("a b")], "cannot be an id"),
    ([{"id": "a"}], "item a needs a title"),
    ([step("a") | {"description": "x" * 30_000}], "characters"),
]


@pytest.mark.parametrize("way", WAYS)
def test_every_fault_of_a_plan_is_told_and_nothing_is_changed(planner, way):
    for steps, words in FAULTS:
        heard = getattr(planner, way)("plan-steps", steps=steps)
        assert heard.refused
        assert words in heard.text
    assert planned(planner.scene) == []


def test_what_a_terminal_would_obey_is_not_kept(planner):
    assert not planner.by_http("plan-steps", steps=[step("a") | {"title": "x\x1b[31my\0"}]).refused
    shown = planner.scene.ok("quest", "show", "1", "--json").json
    assert shown["steps"][0]["title"] == "xy"


def test_who_is_not_a_planner_is_told_so(scene):
    with running_crew(scene):
        worker = waiting_step(scene)
        for way in WAYS:
            heard = getattr(worker, way)("plan-steps", steps=[step("a")])
            assert heard.refused
            assert "only a role that plans may hand in a plan" in heard.text
            heard = getattr(worker, way)("get-quest")
            assert heard.refused
            assert "is not part of a quest" in heard.text
