"""What is asked of quests: that one begins, ends, or has this plan; and who may ask it."""

import pytest

from crew.domain.kernel.errors import Conflict, NotFound, UsageError
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.task import Task
from crew.domain.rows.workflow import as_text
from crew.domain.world import born
from domain.quest_life import ROOT, RULES, Life, built_in, steps
from domain.scenes import given
from refusals import raises_code


def begin(world, task="1"):
    args = {"task": task, "workflow": "quest", "definition": as_text(built_in()), "slots": 2}
    return answer(world, Request(verb="quest_new", args=args), rules=RULES, at=7.0)


def test_a_quest_begins_with_a_task_that_holds_the_request():
    asked = begin(given(Task(id="1", title="Big")))
    assert asked.reply == "1"
    assert [(fact.kind, fact.trigger) for fact in asked.facts] == [
        ("quest", "begun"),
        ("walk", "begun"),
        ("task", "taken_into_quest"),
    ]


@pytest.mark.parametrize("state", ["in_progress", "done", "merged", "closed", "error"])
def test_only_a_task_that_is_to_do_can_become_a_quest(state):
    with raises_code(Conflict, "task_taken", "task 1", state) as refused:
        begin(given(Task(id="1", title="Big", state=state)))
    assert "crew quest new" in refused.value.hint


def test_a_task_becomes_a_quest_once():
    life = Life()
    with pytest.raises(Conflict):
        begin(life.world)


def test_a_quest_keeps_its_workflow_as_it_was_when_it_began():
    assert Life().quest.definition == as_text(built_in())


@pytest.mark.parametrize("quest", ["9", "", "2"])
def test_a_quest_that_nobody_knows_cannot_be_cancelled(quest):
    with pytest.raises(NotFound) as refused:
        Life().planned(a="").ask("quest_cancel", quest=quest)
    assert refused.value.hint == "quests: 1"


def test_a_quest_is_cancelled_once():
    life = Life()
    life.ask("quest_cancel", quest=ROOT)
    with raises_code(Conflict, "quest_over", "quest 1"):
        life.ask("quest_cancel", quest=ROOT)


def test_a_quest_says_why_it_was_cancelled():
    life = Life()
    life.ask("quest_cancel", quest=ROOT, reason="too dear")
    assert life.world.tasks[ROOT].close_reason == "too dear"


def test_only_a_role_that_plans_may_hand_in_steps():
    life = Life()
    life.begin(ROOT)
    with raises_code(Conflict, "not_a_planner") as refused:
        life.plan(ROOT, steps(a=""))
    # It may not ask for another role, so it is not told to.
    assert "pathseeker" in refused.value.hint
    life = Life().planned(a="")
    life.begin(life.task("a"))
    with raises_code(Conflict, "not_a_planner") as refused:
        life.plan(life.task("a"), steps(a=""))
    assert "needs-role-followup" in refused.value.hint
    assert "pathseeker" in refused.value.hint


def test_a_plan_of_a_step_that_is_over_or_of_another_attempt_changes_nothing():
    life = Life()
    life.turn(ROOT)
    late = life.begin(ROOT)
    life.say(ROOT, "complete", summary="s")
    life.end(ROOT)
    args = {"run": late.id, "attempt": late.attempt, "steps": steps(a="")}
    with raises_code(Conflict, "step_over"):
        life.ask("plan_steps", **args)
    assert life.quest.plan == ()


def test_a_task_that_is_no_quests_has_no_plan():
    life = Life(agents=4)
    life.record([born(Task(id="5", title="other", target="main"), "seen", at=1.0)])
    life.begin("5")
    with raises_code(Conflict, "not_a_planner"):
        life.plan("5", steps(a=""))
    assert life.quest.plan == ()


def test_a_plan_may_be_as_long_as_the_workflow_says():
    life = Life()
    life.turn(ROOT)
    life.begin(ROOT)
    most = built_in().most_steps
    reply = life.plan(ROOT, [{"id": f"s{n}", "title": "t"} for n in range(most)])
    assert reply == f"{most} items are planned"
    with raises_code(UsageError, "invalid_plan", str(most + 1)):
        life.plan(ROOT, [{"id": f"s{n}", "title": "t"} for n in range(most + 1)])
