"""What follows at each stage of a workflow: gates, reviews, and the steps of a plan."""

from dataclasses import replace

import pytest

from crew.domain.commands import CheckStage
from crew.domain.quests.position import is_unfinished
from crew.domain.quests.role_entry import MOST_CONFLICTS
from crew.domain.quests.stage_outcomes import review_judged, role_finished
from crew.domain.rows.workflow import Does, Role, Stage, Workflow
from crew.domain.runs.complaints import Evidence
from crew.domain.runs.verdicts import Review, Verdict, review_ended
from domain.quest_life import ROOT, Life, built_in
from domain.scenes import RULES


def built(**changes):
    """A step that is built and stands before its gate."""
    life = Life(**changes).planned(a="", b="", c="a")
    life.turn(life.task("a"))
    return life, life.task("a")


# Gates


def test_a_green_gate_leads_on_and_needs_no_agent_in_between():
    life, task = built()
    assert CheckStage(subject=life.run(task).id) in life.due()
    life.gate(task)
    assert life.run(task).role == "siegemaster"
    assert life.position(task).visited("ward") == 1


def test_a_gate_that_is_called_like_a_role_has_a_limit_of_its_own():
    quest = built_in()
    ward = replace(quest.roles["spiritmender"], name="ward", followups=())
    stages = [replace(s, roles=("ward",)) if s.name == "mend" else s for s in quest.step_stages]
    workflow = replace(quest, roles={**quest.roles, "ward": ward}, step_stages=tuple(stages))
    life, task = built(workflow=workflow)
    for _ in range(2):
        life.gate(task, passed=False)
        life.turn(task)
    assert not life.world.questions
    life.gate(task, passed=False)
    assert "ward was red 3 times" in life.question.question


def test_a_red_gate_leads_to_whoever_mends_with_its_output():
    life, task = built()
    life.gate(task, passed=False, output="E   assert 1 == 2")
    run = life.begin(task)
    assert (run.role, run.notes) == ("spiritmender", "> E   assert 1 == 2")
    life.say(task, "complete", summary="mended")
    life.end(task)
    life.look(task)
    assert life.position(task).stage == "ward"
    life.gate(task)
    assert life.run(task).role == "siegemaster"


def spent():
    """The gate of step a is red for the third time."""
    life, task = built()
    for number in range(3):
        life.gate(task, passed=False, output=f"failure {number}")
        if number < 2:
            life.turn(task, summary=f"mended {number}")
    return life, task


def test_the_third_red_gate_blocks_the_step_with_a_question_that_tells_the_whole_story():
    life, task = spent()
    assert life.position(task).state == "blocked"
    assert "item a is blocked: ward was red 3 times" in life.question.question
    told = life.question.context
    order = ["all done", "failure 0", "mended 0", "failure 1", "mended 1", "failure 2"]
    places = [told.index(words) for words in order]
    assert places == sorted(places)
    assert "codeweaver (complete):\n> all done" in told
    assert "ward (red):\n> failure 0" in told


def test_of_a_blocked_step_the_dependents_wait_and_the_independent_go_on():
    life, task = spent()
    assert task not in life.working
    assert life.state("c") == "todo"
    life.finish("b")
    assert life.state("b") == "merged"
    assert life.state("c") == "todo"
    assert life.run(ROOT).agent is None


def test_the_answer_rearms_the_step_and_is_told_to_the_role_together_with_the_failure():
    life, task = spent()
    life.ask("answer", question=life.question.id, text="the fixture is wrong")
    run = life.begin(task)
    assert run.role == "spiritmender"
    assert "failure 2" in run.notes
    assert "The answer:\n> the fixture is wrong" in run.notes
    assert life.position(task).visits == ()
    life.say(task, "complete", summary="s")
    life.end(task)
    life.look(task)
    life.gate(task, passed=False)
    assert life.position(task).state == "in_progress", "one red gate of the new count is not three"


def test_a_blocked_step_waits_for_its_answer_across_restarts():
    life, task = spent()
    life.restart()
    assert life.position(task).state == "blocked"
    life.ask("answer", question=life.question.id, text="go on")
    assert life.run(task).agent


# Reviews and gates of the whole

WHOLE = Workflow(
    name="whole",
    roles={name: Role(name=name, retries=2) for name in ("thinker", "maker", "judge")},
    stages=(
        Stage(
            name="think",
            does=Does.ROLE,
            roles=("thinker",),
            plans=True,
            routes={"complete": "walk"},
        ),
        Stage(name="walk", does=Does.STEPS, routes={"complete": "proof"}),
        Stage(name="proof", does=Does.GATE, limit=2, routes={"green": "look", "red": "mend"}),
        Stage(
            name="look",
            does=Does.REVIEW,
            roles=("judge",),
            limit=2,
            routes={"pass": "done", "fail": "mend"},
        ),
        Stage(name="mend", does=Does.ROLE, roles=("maker",), routes={"complete": "proof"}),
    ),
    step_stages=(
        Stage(name="make", does=Does.ROLE, roles=("maker",), routes={"complete": "done"}),
    ),
)


def planned(life):
    """One step is planned, and walked by a single role."""
    life.begin(ROOT)
    life.plan(ROOT, [{"id": "a", "title": "Do a"}])
    life.say(ROOT, "complete", summary="s")
    life.end(ROOT)
    life.look(ROOT)
    return life


def walked():
    """All steps have arrived, and the whole stands before its gate."""
    life = planned(Life(workflow=WHOLE))
    life.turn(life.task("a"))
    life.land(life.task("a"))
    return life


def judge(life, notes):
    run = life.run(ROOT)
    life.record(review_judged(life.world, run, notes=notes, head="head-1", at=life.now))


def test_where_a_gate_follows_the_steps_nothing_is_worked_at_before_it():
    life = walked()
    assert (life.position(ROOT).stage, life.run(ROOT).state) == ("proof", "reviewing")
    assert CheckStage(subject=life.run(ROOT).id) in life.due()
    life.gate(ROOT)
    judge(life, None)
    assert life.world.tasks[ROOT].state == "done"
    assert life.world.tasks[ROOT].head == "head-1"


def test_a_failed_review_leads_where_the_workflow_says_with_its_notes():
    life = walked()
    life.gate(ROOT)
    judge(life, "no tests at all")
    assert life.run(ROOT).role == "maker"
    assert life.run(ROOT).notes == "no tests at all"


@pytest.mark.parametrize("notes", [None, "no tests"])
def test_a_judged_review_leaves_no_verdict_for_the_next_stage(notes):
    life = walked()
    life.gate(ROOT)
    run, passed = life.run(ROOT), Verdict(commit="head-1", reviewer="judge", passed=notes is None)
    review = Review(reviewer="judge", verdict=passed)
    life.record(review_ended(life.world, run, review, rules=RULES, at=life.now))
    assert len(life.run(ROOT).unjudged) == 1
    judge(life, notes)
    assert life.run(ROOT).unjudged == ()


def test_a_review_that_fails_too_often_is_asked_about():
    life = walked()
    life.gate(ROOT)
    judge(life, "no tests")
    life.turn(ROOT)
    life.gate(ROOT)
    judge(life, "still none")
    assert life.position(ROOT).state == "blocked"
    assert "look was fail 2 times" in life.question.question


BARE = replace(
    WHOLE, stages=(WHOLE.stages[0], replace(WHOLE.stages[1], routes={"complete": "done"}))
)


def test_where_nothing_follows_the_steps_the_branch_is_looked_at_and_merged():
    life = planned(Life(workflow=BARE))
    assert life.run(ROOT).agent is None
    life.turn(life.task("a"))
    assert life.run(ROOT).agent is None
    life.land(life.task("a"))
    assert life.run(ROOT).agent
    life.look(ROOT)
    assert (life.world.tasks[ROOT].state, life.world.tasks[ROOT].head) == ("done", "head-1")


def test_a_request_that_was_stopped_before_that_is_finished_by_the_role_that_was_last():
    life = planned(Life(workflow=BARE))
    life.ask("stop_task", task=ROOT)
    life.ask("retry", subject=ROOT)
    life.turn(life.task("a"))
    life.land(life.task("a"))
    life.turn(ROOT)
    assert life.world.tasks[ROOT].state == "done"


# The merge queue


def test_a_step_that_the_merge_queue_sends_back_goes_to_the_stage_that_takes_it_back():
    life, task = built()
    life.gate(task)
    life.turn(task)
    life.send_back(task, ask="red_gate", notes="red together with b")
    run = life.begin(task)
    assert (run.role, life.position(task).stage) == ("spiritmender", "mend")
    assert run.notes == "red together with b"
    life.say(task, "complete", summary="s")
    life.end(task)
    life.look(task)
    assert life.position(task).stage == "ward"


def test_a_conflict_is_told_with_the_commit_that_is_to_be_merged():
    life, task = built()
    life.gate(task)
    life.turn(task)
    life.send_back(
        task, ask="conflict", notes="both changed x", merge_commit="c7", merge_paths=("x",)
    )
    run = life.run(task)
    assert (run.merge_commit, run.merge_head, run.merge_paths) == ("c7", f"head-{task}", ("x",))
    assert (run.role, run.ask, run.session_used) == ("spiritmender", "conflict", False)


def test_a_role_that_never_merges_is_asked_three_times_and_then_a_person_is():
    life, task = built()
    life.gate(task)
    life.turn(task)
    life.send_back(
        task, ask="conflict", notes="", merge_commit="c7", merge_paths=("x",), merge_notes="sides"
    )
    for _ in range(3):
        assert life.begin(task).ask == "conflict"
        life.say(task, "complete", summary="merged, I think")
        life.end(task)
        unmerged = Evidence(head="h", unmerged=True)
        run = life.run(task)
        life.record(role_finished(life.world, run, unmerged, rules=life.rules, at=life.now))
    assert "asked 3 times to resolve the conflict with c7 in x" in life.question.question
    life.ask("answer", question=life.question.id, text="keep theirs")
    run = life.begin(task)
    assert (run.ask, run.merge_notes, run.merge_tries) == ("conflict", "sides", 0)
    assert "> keep theirs" in run.notes


def test_whoever_has_no_stage_for_that_goes_back_to_the_role_that_was_last():
    life = planned(Life(workflow=WHOLE))
    task = life.task("a")
    life.turn(task)
    session = life.run(task).session
    life.send_back(task, ask="red_gate", notes="red")
    run = life.begin(task)
    assert (run.role, run.session, run.ask) == ("maker", session, "red_gate")


def test_what_the_merge_queue_sends_back_too_often_is_asked_about():
    life, task = built()
    life.gate(task)
    life.turn(task)
    for _ in range(2):
        life.send_back(task, ask="red_gate", notes="red")
        life.turn(task)
        life.gate(task)
        life.turn(task)
    life.send_back(task, ask="red_gate", notes="red")
    life.turn(task)
    life.gate(task)
    assert life.position(task).state == "blocked"
    assert "siegemaster was called 4 times" in life.question.question


CONFLICT = {"ask": "conflict", "notes": "", "merge_paths": ("x",)}


def conflicted(life, task, *, times, is_same=True):
    """It comes back with one conflict after the other, each of them resolved."""
    for number in range(times):
        life.send_back(task, **CONFLICT, merge_commit=f"c{number}")
        if life.position(task).state == "blocked":
            return number
        assert life.run(task).role == "spiritmender"
        life.turn(task)
        life.gate(task, is_same=is_same)
        if not is_same:
            assert life.run(task).role == "siegemaster"
            life.turn(task)
        assert life.world.tasks[task].state == "done"
    return times


@pytest.mark.parametrize("is_same", [True, False])
def test_a_conflict_counts_for_no_role_and_no_gate(is_same):
    """Nobody failed: 12 conflicts are more than any role or gate has tries."""
    life, task = built()
    life.gate(task)
    life.turn(task)
    assert conflicted(life, task, times=12, is_same=is_same) == 12
    sieges = [said.role for said in life.position(task).said].count("siegemaster")
    assert sieges == (1 if is_same else 13)
    life.land(task)
    assert life.world.positions[task].state == "complete"


def test_an_item_that_only_merged_what_landed_is_not_sieged_again_but_gated():
    life, task = built()
    life.gate(task)
    life.turn(task)
    life.send_back(task, **CONFLICT, merge_commit="c7")
    assert life.position(task).passed == f"head-{task}"
    life.turn(task)
    assert life.position(task).stage == "ward"
    life.gate(task, passed=False)
    assert life.run(task).role == "spiritmender"
    life.turn(task)
    life.gate(task, is_same=True)
    assert (life.world.tasks[task].state, life.world.tasks[task].head) == ("done", f"head-{task}")


def test_after_a_red_gate_of_the_queue_the_item_is_sieged_again():
    life, task = built()
    life.gate(task)
    life.turn(task)
    life.send_back(task, **CONFLICT, merge_commit="c7")
    life.turn(task)
    life.gate(task, is_same=True)
    life.send_back(task, ask="red_gate", notes="red")
    assert life.position(task).passed == ""


def test_conflicts_have_a_limit_of_their_own_and_the_answer_begins_a_new_count():
    life, task = built()
    life.gate(task)
    life.turn(task)
    assert conflicted(life, task, times=99) == MOST_CONFLICTS
    assert f"it had conflicts with what landed {MOST_CONFLICTS + 1} times" in life.question.question
    life.ask("answer", question=life.question.id, text="go on")
    run = life.begin(task)
    assert (run.role, run.ask, run.merge_commit) == ("spiritmender", "conflict", "c20")
    assert life.world.positions[task].visits == ()


def test_each_item_of_a_long_plan_may_cause_a_conflict():
    life = Life().planned(s0="", **{f"s{number}": "s0" for number in range(1, 30)})
    task = life.task("s0")
    life.turn(task)
    life.gate(task)
    life.turn(task)
    assert conflicted(life, task, times=99) == 30


def test_the_request_itself_is_looked_at_again_after_a_conflict():
    """Nothing tells its own work from that of its items."""
    life = Life().planned(a="")
    life.finish("a")
    life.turn(ROOT)
    life.send_back(ROOT, **CONFLICT, merge_commit="c7")
    assert life.position(ROOT).passed == ""
    assert life.run(ROOT).role == "spiritmender"


def test_the_whole_quest_that_the_merge_queue_sends_back_is_mended_and_merged_again():
    life = Life().planned(a="")
    life.finish("a")
    life.turn(ROOT)
    life.send_back(ROOT, ask="red_gate", notes="red on main")
    assert life.run(ROOT).role == "spiritmender"
    life.turn(ROOT)
    assert life.world.tasks[ROOT].state == "done"
    life.land(ROOT)
    assert life.quest.state == "complete"


# What is left to walk


@pytest.mark.parametrize(
    ("task", "told", "state", "left"),
    [
        ("", False, "todo", True),
        ("2", False, "todo", True),
        ("2", False, "merged", False),
        ("2", True, "todo", True),
        ("2", True, "done", True),
        ("2", True, "error", True),
        ("2", True, "merged", False),
        ("2", True, "closed", False),
        ("9", True, "merged", True),
    ],
)
def test_a_plan_is_walked_when_each_step_is_a_task_that_arrived_or_was_given_up(
    task, told, state, left
):
    life = Life().planned(a="")
    (step,) = life.quest.steps
    quest = replace(life.quest, plan=(tuple(step._replace(task=task, told=told)),))
    tasks = {**life.world.tasks, "2": replace(life.world.tasks["2"], state=state)}
    world = replace(life.world, quests={ROOT: quest}, tasks=tasks)
    assert is_unfinished(world, ROOT) is left


def test_a_request_without_steps_has_nothing_left_to_walk():
    assert not is_unfinished(Life().world, ROOT)
