"""A role that keeps its session for its quest resumes it at the next item, alone."""

from dataclasses import replace

import pytest

from crew.config.workflow_files import BUILT_IN, load_workflow
from crew.domain.quests.role_sessions import (
    MOST_KEPT,
    as_they_keep,
    is_used_elsewhere,
    session_kept,
    that_keep_none,
)
from crew.domain.rows.step import ErrorKind
from crew.domain.rules import Rules
from domain.quest_life import ROOT, Life, built_in, steps

RULES = Rules(movable_sessions=frozenset({"claude"}))


def keeping(*roles: str, rules: Rules = RULES, **how: object) -> Life:
    workflow = built_in()
    kept = {name: replace(workflow.roles[name], session="quest") for name in roles}
    return Life(workflow=replace(workflow, roles={**workflow.roles, **kept}), rules=rules, **how)


def begun(life: Life, key: str) -> tuple[str, bool]:
    """The session in which a step of this item begins, and whether its CLI knows it already."""
    run = life.run(life.task(key))
    return life.begin(life.task(key)).session, run.session_used


def test_the_next_item_resumes_the_session_of_its_role():
    life = keeping("codeweaver", slots=1).planned(a="", b="a")
    first = life.begin(life.task("a")).session
    life.say(life.task("a"), "complete", summary="built")
    life.end(life.task("a"))
    life.look(life.task("a"))
    life.gate(life.task("a"))
    life.turn(life.task("a"))
    life.land(life.task("a"))
    assert begun(life, "b") == (first, True)
    assert life.run(life.task("b")).ask == "role", "it is told the new item as a whole"


def test_each_role_has_a_session_of_its_own():
    life = keeping("codeweaver", "siegemaster", slots=1).planned(a="", b="a")
    life.finish("a")
    builder, tester = (session for _, _, session in life.quest.sessions)
    life.turn(life.task("b"))
    assert life.run(life.task("b")).session == builder
    life.gate(life.task("b"))
    assert life.run(life.task("b")).session == tester


def test_without_the_setting_every_item_begins_a_new_session():
    life = keeping(slots=1).planned(a="", b="a")
    life.finish("a")
    assert life.quest.sessions == ()
    assert not life.run(life.task("b")).session_used


def test_a_cli_that_cannot_resume_elsewhere_begins_a_new_session():
    life = keeping("codeweaver", slots=1, rules=Rules()).planned(a="", b="a")
    life.finish("a")
    assert life.quest.sessions == ()
    assert not life.run(life.task("b")).session_used


def test_items_at_the_same_time_never_share_a_session():
    life = keeping("codeweaver").planned(a="", b="a", c="a")
    life.finish("a")
    kept = life.quest.sessions[0][2]
    assert sorted([begun(life, "b")[0] == kept, begun(life, "c")[0] == kept]) == [False, True]


def test_a_session_that_a_waiting_role_resumes_later_is_lent_to_no_other_item():
    life = keeping("codeweaver").planned(a="", b="a", c="b")
    life.finish("a")
    kept, task = life.quest.sessions[0][2], life.task("b")
    assert begun(life, "b") == (kept, True)
    life.say(task, "needs-role-followup", role="spiritmender", reason="lint", resume=True)
    life.end(task)
    assert life.world.positions[task].state == "waiting_for_role"
    stranger = replace(life.run(task), id="another")
    assert is_used_elsewhere(life.world, stranger, kept)
    assert not is_used_elsewhere(life.world, stranger, "free")


def test_a_role_cannot_keep_its_session_if_its_cli_cannot_move_it():
    workflow = keeping("codeweaver", "siegemaster").workflow
    siege = replace(workflow.roles["siegemaster"], agent="codex")
    workflow = replace(workflow, roles={**workflow.roles, "siegemaster": siege})
    rules = replace(RULES, default_kind="claude")
    assert that_keep_none(workflow, rules) == {"siegemaster": "codex"}
    kept = as_they_keep(workflow, rules).roles
    assert (kept["codeweaver"].session, kept["siegemaster"].session) == ("quest", "item")


def test_a_role_whose_session_moved_on_gets_another_one_when_its_item_comes_back():
    plan = load_workflow(BUILT_IN / "plan.toml")
    builder = replace(plan.roles["builder"], session="quest")
    workflow = replace(plan, roles={**plan.roles, "builder": builder})
    life = Life(workflow=workflow, rules=RULES, slots=2)
    life.begin(ROOT)
    life.plan(ROOT, steps(a="", b="c", c=""))
    life.say(ROOT, "complete", summary="planned")
    life.end(ROOT)
    life.look(ROOT)
    for key in "ca":  # the session of a is the newest one
        life.turn(life.task(key))
        life.gate(life.task(key))
    life.land(life.task("c"))
    lent = life.run(life.task("a")).session
    assert begun(life, "b") == (lent, True)
    life.send_back(life.task("a"), ask="red_gate", notes="red")
    assert life.run(life.task("a")).session != lent


@pytest.mark.parametrize("kind", [ErrorKind.CONTEXT_FULL, ErrorKind.SESSION_UNKNOWN])
def test_a_session_that_its_cli_refuses_is_resumed_by_no_other_item(kind):
    life = keeping("codeweaver", slots=1).planned(a="", b="a", c="b")
    life.finish("a")
    task = life.task("b")
    full = life.begin(task).session
    life.end(task, error=kind)
    assert full not in [session for _, _, session in life.quest.sessions]
    assert life.begin(task).session != full


def test_a_quest_remembers_a_bounded_number_of_sessions():
    life = keeping("codeweaver", slots=1).planned(a="")
    life.begin(life.task("a"))
    run, quest = life.run(life.task("a")), life.quest
    many = tuple(("codeweaver", "claude", f"s{n}") for n in range(MOST_KEPT))
    world = replace(life.world, quests={ROOT: replace(quest, sessions=many)})
    (kept,) = session_kept(world, run, rules=RULES, at=1.0)
    assert kept.changes["sessions"] == (*many[1:], ("codeweaver", "claude", run.session))


def test_the_sessions_survive_a_restart():
    life = keeping("codeweaver", slots=1).planned(a="", b="a")
    life.finish("a")
    kept = life.quest.sessions
    life.restart()
    assert life.quest.sessions == kept
    assert begun(life, "b") == (kept[0][2], True)


def test_the_first_role_of_an_item_is_called_with_its_own_kind_of_agent():
    workflow = built_in()
    codex = replace(workflow.roles["codeweaver"], agent="codex")
    life = Life(workflow=replace(workflow, roles={**workflow.roles, "codeweaver": codex}))
    life.planned(a="")
    assert life.run(life.task("a")).agent_kind == "codex"
