"""One role needs another one first: who may ask whom, and how the asker goes on."""

from dataclasses import replace

import pytest

from crew.domain.kernel.errors import Conflict
from crew.runner.views.quest_views import quest_view
from domain.quest_life import ROOT, Life, built_in
from refusals import raises_code


def asks(life, task, role, *, resume=True, reason="not mine", context="see x.py"):
    """The role that acts asks for another one; its run as it was."""
    run = life.begin(task)
    told = {"role": role, "reason": reason, "context": context, "resume": resume}
    life.say(task, "needs-role-followup", **told)
    life.end(task)
    return run


def building(**changes):
    life = Life(**changes).planned(a="")
    return life, life.task("a")


def test_the_other_role_acts_first_in_a_session_of_its_own_and_is_told_why():
    life, task = building()
    asker = asks(life, task, "spiritmender", reason="40 lint errors")
    run = life.begin(task)
    assert (run.role, run.ask) == ("spiritmender", "role")
    assert run.session != asker.session
    assert run.notes == (
        "codeweaver needs you to act first, and says why:\n> 40 lint errors\n>\n> see x.py"
    )
    assert life.world.positions[task].state == "waiting_for_role"


def test_with_resume_the_asker_goes_on_in_its_very_session_with_what_the_other_said():
    life, task = building()
    asker = asks(life, task, "spiritmender", resume=True)
    life.turn(task, summary="all 40 are mended")
    run = life.begin(task)
    assert (run.role, run.session, run.session_used) == ("codeweaver", asker.session, True)
    assert (run.ask, run.notes) == (
        "followed",
        "spiritmender has done its part, and says:\n> all 40 are mended",
    )
    assert life.position(task).id == task
    life.say(task, "complete", summary="s")
    life.end(task)
    life.look(task)
    assert life.position(task).stage == "ward"


def test_the_asker_is_resumed_once():
    life, task = building()
    asker = asks(life, task, "spiritmender")
    life.turn(task)
    life.turn(task)
    started = [
        fact.changes["session"]
        for fact in life.facts
        if fact.trigger == "step_started" and fact.kind == "run" and fact.subject == asker.id
    ]
    assert started.count(asker.session) == 2


def test_without_resume_the_stage_of_the_asker_is_finished_with_the_other_role():
    life, task = building()
    asks(life, task, "spiritmender", resume=False)
    life.turn(task)
    assert (life.position(task).id, life.position(task).stage) == (task, "ward")
    assert life.run(task).state == "reviewing"


@pytest.mark.parametrize("resume", [True, False])
def test_a_follow_up_names_who_asked_for_it_whoever_acts_now(resume):
    life, task = building()
    asks(life, task, "spiritmender", resume=resume)
    asks(life, task, "pathseeker", resume=resume)
    while life.position(task).stage == "build":
        life.turn(task)
    life.gate(task)
    assert life.run(task).role == "siegemaster"
    quest = quest_view(life.world, life.quest, request="", passed={})
    (first,) = quest["steps"][0]["followups"]
    (second,) = first["followups"]
    assert (first["role"], first["asked_by"]) == ("spiritmender", "codeweaver")
    assert (second["role"], second["asked_by"]) == ("pathseeker", "spiritmender")


def test_a_reviewer_that_hands_off_without_resume_is_done():
    life = Life().planned(a="")
    life.finish("a")
    asks(life, ROOT, "spiritmender", resume=False)
    life.turn(ROOT)
    assert life.world.tasks[ROOT].state == "done"


def test_a_reviewer_that_rejects_with_resume_looks_again():
    life = Life().planned(a="")
    life.finish("a")
    asker = asks(life, ROOT, "spiritmender", resume=True, reason="no tests")
    life.turn(ROOT, summary="tests are there")
    assert life.world.tasks[ROOT].state == "in_progress"
    assert life.begin(ROOT).session == asker.session


def test_roles_may_wait_for_each_other_in_a_chain_which_ends_in_reverse_order():
    life, task = building()
    first = asks(life, task, "spiritmender")
    second = asks(life, task, "siegemaster")
    assert life.run(task).role == "siegemaster"
    life.turn(task, summary="sieged")
    assert (life.run(task).role, life.run(task).session) == ("spiritmender", second.session)
    assert "sieged" in life.run(task).notes
    life.turn(task, summary="mended")
    assert (life.run(task).role, life.run(task).session) == ("codeweaver", first.session)
    assert "mended" in life.run(task).notes


def test_in_a_chain_whoever_did_not_want_to_go_on_is_passed_over():
    life, task = building()
    first = asks(life, task, "spiritmender", resume=True)
    asks(life, task, "siegemaster", resume=False)
    life.turn(task, summary="sieged")
    assert (life.run(task).role, life.run(task).session) == ("codeweaver", first.session)
    states = [w.state for w in life.world.positions.values() if w.task == task]
    assert states == ["in_progress", "complete", "complete"]


def test_a_chain_in_which_nobody_wanted_to_go_on_finishes_the_stage():
    life, task = building()
    asks(life, task, "spiritmender", resume=False)
    asks(life, task, "siegemaster", resume=False)
    life.turn(task)
    assert (life.position(task).id, life.position(task).stage) == (task, "ward")


@pytest.mark.parametrize("deepest", [1, 2, 3])
def test_a_chain_is_only_so_deep(deepest):
    life, task = building(workflow=replace(built_in(), deepest=deepest))
    others = ["spiritmender", "siegemaster", "pathseeker", "chaoswhisperer"]
    for role in others[:deepest]:
        asks(life, task, role)
    life.begin(task)
    with raises_code(Conflict, "too_deep", str(deepest)):
        life.say(task, "needs-role-followup", role="lawbringer", reason="r")


@pytest.mark.parametrize("role", ["codeweaver", "spiritmender"])
def test_nobody_asks_for_itself_or_for_whoever_waits_for_it(role):
    life, task = building()
    asks(life, task, "spiritmender")
    life.begin(task)
    before = life.world
    with pytest.raises(Conflict) as refused:
        life.say(task, "needs-role-followup", role=role, reason="r")
    assert refused.value.hint
    assert life.world is before


def test_whoever_asks_for_its_own_role_is_told_who_else_there_is():
    life = Life().planned(a="")
    life.begin(life.task("a"))
    with raises_code(Conflict, "own_role", "codeweaver") as refused:
        life.say(life.task("a"), "needs-role-followup", role="codeweaver", reason="more of it")
    assert "spiritmender" in refused.value.hint


def test_a_role_that_nobody_knows_is_refused_with_those_that_are_there():
    life, task = building()
    life.begin(task)
    with raises_code(Conflict, "unknown_role", "wizard") as refused:
        life.say(task, "needs-role-followup", role="wizard", reason="r")
    assert "spiritmender" in refused.value.hint
    assert "codeweaver" not in refused.value.hint


def test_a_follow_up_may_ask_a_person_and_the_answer_is_its_own():
    life, task = building()
    asks(life, task, "spiritmender")
    session = life.begin(task).session
    life.say(task, "needs-user-input", question="which linter?")
    life.end(task)
    assert life.position(task).state == "waiting_for_user"
    assert life.world.positions[task].state == "waiting_for_role"
    life.restart()
    life.ask("answer", question=life.question.id, text="ruff")
    run = life.begin(task)
    assert (run.role, run.session) == ("spiritmender", session)


def test_a_follow_up_that_is_partially_complete_goes_on_as_a_follow_up():
    life, task = building()
    asker = asks(life, task, "spiritmender")
    life.turn(task, "partially-complete")
    assert life.run(task).role == "spiritmender"
    life.turn(task)
    assert life.run(task).session == asker.session


def test_the_chain_outlives_the_runner():
    life, task = building()
    first = asks(life, task, "spiritmender")
    asks(life, task, "siegemaster")
    life.restart()
    life.turn(task)
    life.restart()
    life.turn(task)
    assert life.begin(task).session == first.session


def test_what_a_follow_up_leaves_uncommitted_goes_back_to_it_and_not_to_the_asker():
    life, task = building()
    asks(life, task, "spiritmender")
    life.begin(task)
    life.say(task, "complete", summary="s")
    life.end(task)
    life.look(task, uncommitted=("x.py",))
    assert (life.run(task).role, life.run(task).ask) == ("spiritmender", "uncommitted")


def test_a_planner_that_asked_for_a_follow_up_after_its_plan_goes_on_where_it_planned():
    life = Life()
    life.turn(ROOT)
    planner = life.begin(ROOT)
    life.plan(ROOT, [{"id": "a", "title": "Do a"}])
    life.say(ROOT, "needs-role-followup", role="codeweaver", reason="a spike")
    life.end(ROOT)
    life.turn(ROOT)
    run = life.begin(ROOT)
    assert (run.role, run.session) == ("pathseeker", planner.session)
    assert life.position(ROOT).stage == "plan"


def test_a_reviewer_waits_until_the_steps_of_a_new_plan_are_walked_and_then_looks_again():
    life = Life().planned(a="")
    life.finish("a")
    reviewer = asks(life, ROOT, "pathseeker", resume=True)
    life.begin(ROOT)
    life.plan(ROOT, [{"id": "b", "title": "Do b"}])
    life.say(ROOT, "complete", summary="one more step")
    life.end(ROOT)
    life.look(ROOT)
    assert (life.run(ROOT).agent, life.state("b")) == (None, "in_progress")
    life.finish("b")
    run = life.begin(ROOT)
    assert (run.role, run.session) == ("lawbringer", reviewer.session)
    assert life.position(ROOT).stage == "law"


def test_a_role_that_began_anew_before_a_gate_and_hands_off_leads_into_that_gate():
    life, task = building()
    life.turn(task)
    assert life.position(task).stage == "ward"
    life.kill(task)
    asks(life, task, "spiritmender", resume=False)
    life.turn(task)
    assert (life.position(task).stage, life.run(task).state) == ("ward", "reviewing")
    life.gate(task)
    assert life.run(task).role == "siegemaster"
