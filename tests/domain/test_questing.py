"""A whole quest, fact by fact: slots, dependencies, what follows from its tasks, its end."""

from dataclasses import replace

import pytest

from crew.domain.clock import Clock
from crew.domain.commands import Kill, RemoveWorktree, Step
from crew.domain.kernel.errors import Conflict
from crew.domain.lead_choice import lead_of
from crew.domain.plan import decide
from crew.domain.quests.quest_outcomes import follow
from crew.domain.rows.quest import PlanItem
from crew.domain.rows.task import Task
from crew.domain.rows.terminal import Terminal
from crew.domain.runs.run_outcomes import completed
from crew.domain.tasks.task_outcomes import GIVEN_UP_AFTER_S
from crew.domain.terminals.terminal_outcomes import closed, taken_over
from crew.domain.world import apply_all, born, moved, noted
from domain.quest_life import ROOT, Life
from domain.scenes import waits
from refusals import raises_code


def test_a_request_is_thought_over_planned_walked_reviewed_and_merged():
    life = Life()
    assert life.run(ROOT).role == "chaoswhisperer"
    life.planned(a="", b="a")
    assert (life.state("a"), life.state("b")) == ("in_progress", "todo")
    life.finish("a")
    life.finish("b")
    assert life.run(ROOT).role == "lawbringer"
    life.turn(ROOT)
    assert life.world.tasks[ROOT].state == "done"
    life.land(ROOT)
    assert life.quest.state == "complete"
    assert {position.state for position in life.world.positions.values()} == {"complete"}


def test_a_step_walks_codeweaver_then_the_gate_then_siegemaster():
    life = Life().planned(a="")
    task = life.task("a")
    assert life.run(task).role == "codeweaver"
    life.turn(task)
    assert (life.position(task).stage, life.run(task).state) == ("ward", "reviewing")
    life.gate(task)
    assert life.run(task).role == "siegemaster"
    life.turn(task)
    assert life.world.tasks[task].state == "done"


def test_steps_work_on_their_own_branches_into_the_quests_branch():
    life = Life().planned(a="", b="")
    tasks = [life.world.tasks[life.task(key)] for key in "ab"]
    assert [task.target for task in tasks] == ["crew-1", "crew-1"]
    assert [task.branch for task in tasks] == ["crew-2", "crew-3"]


def test_never_more_slots_are_used_than_the_quest_has():
    life = Life(slots=2, agents=4).planned(a="", b="", c="", d="")
    assert life.working == {life.task("a"), life.task("b")}


def test_a_free_slot_takes_the_next_step_at_once():
    life = Life(slots=2).planned(a="", b="", c="")
    life.turn(life.task("a"))
    life.gate(life.task("a"))
    life.turn(life.task("a"))
    assert life.state("a") == "done"
    assert life.working == {life.task("b"), life.task("c")}


def test_other_tasks_are_not_held_back_by_the_slots_of_a_quest():
    life = Life(slots=1, agents=3).planned(a="", b="")
    life.record(given_task("77"))
    assert life.working == {life.task("a"), "77"}


def given_task(name):
    return [born(Task(id=name, title="other", target="main"), "seen", at=1.0)]


def test_a_step_begins_only_when_all_it_waits_for_is_in_the_quests_branch():
    life = Life().planned(a="", b="", c="a b")
    life.finish("a")
    assert life.state("c") == "todo"
    life.turn(life.task("b"))
    life.gate(life.task("b"))
    life.turn(life.task("b"))
    assert (life.state("b"), life.state("c")) == ("done", "todo")
    life.land(life.task("b"))
    assert life.state("c") == "in_progress"


def test_people_cannot_give_a_step_to_an_agent_when_no_slot_is_free():
    life = Life(slots=1, agents=2).planned(a="", b="")
    with raises_code(Conflict, "no_free_slot", "quest 1") as refused:
        life.ask("assign", agent="B", task=life.task("b"))
    assert refused.value.hint


# The worktree of the request


def test_the_worktree_of_the_request_is_removed_while_its_steps_walk_and_comes_back():
    life = Life().planned(a="")
    assert life.world.tasks[ROOT].worktree == ""
    assert (life.run(ROOT).agent, life.run(ROOT).state) == (None, "reviewing")
    life.finish("a")
    assert life.world.tasks[ROOT].worktree == "/t/1"
    assert life.run(ROOT).role == "lawbringer"


def test_the_request_waits_until_its_steps_are_delivered_to_its_branch():
    life = Life().planned(a="")
    task = life.task("a")
    life.turn(task)
    life.gate(task)
    life.turn(task)
    life.record([noted(life.world.tasks[task], "landed", at=life.now, landed_commit="c9")])
    assert life.world.positions[task].is_over
    assert life.run(ROOT).role == "pathseeker"
    life.land(task)
    assert life.run(ROOT).role == "lawbringer"


def test_while_somebody_holds_the_request_its_worktree_stays():
    life = Life()
    assert RemoveWorktree(subject=ROOT) not in life.due()


# Interruptions


@pytest.mark.parametrize("turns", [0, 1])
def test_after_a_kill_the_same_role_takes_the_step_up_in_a_new_session(turns):
    life = Life().planned(a="")
    task = life.task("a")
    for _ in range(turns):
        life.turn(task)
        life.gate(task)
    role, session = life.begin(task).role, life.run(task).session
    life.kill(task)
    assert life.position(task).state == "in_progress", "somebody is free, so it goes on at once"
    assert ("walk", "crashed") in [(fact.kind, fact.trigger) for fact in life.facts]
    run = life.begin(task)
    assert run.role == role
    assert run.session != session
    assert run.id == f"{task}.2"


def test_whoever_begins_anew_is_told_what_the_one_before_was_told():
    life = Life().planned(a="")
    task = life.task("a")
    life.turn(task)
    life.gate(task, passed=False, output="E   assert 1 == 2")
    life.begin(task)
    life.kill(task)
    assert life.run(task).role == "spiritmender"
    assert "assert 1 == 2" in life.run(task).notes


def test_a_step_that_is_stopped_rests_and_is_taken_up_again_when_it_is_retried():
    life = Life().planned(a="")
    task = life.task("a")
    life.begin(task)
    life.ask("stop_task", task=task)
    life.kill(task)
    assert (life.state("a"), life.position(task).state) == ("error", "pending")
    life.ask("retry", subject=task)
    assert life.run(task).role == "codeweaver"
    assert life.position(task).state == "in_progress"


def test_a_step_that_waits_for_an_answer_can_be_stopped_and_its_question_goes():
    life = Life().planned(a="")
    task = life.task("a")
    life.turn(task, "needs-user-input")
    life.ask("stop_task", task=task)
    assert (life.state("a"), life.position(task).state) == ("error", "pending")
    assert life.question.state == "withdrawn"


def test_a_request_that_is_stopped_while_its_steps_walk_goes_on_after_them():
    life = Life().planned(a="")
    life.ask("stop_task", task=ROOT)
    assert life.world.tasks[ROOT].state == "error"
    life.ask("retry", subject=ROOT)
    assert life.world.tasks[ROOT].state == "todo", "nobody is needed yet"
    life.finish("a")
    assert life.run(ROOT).role == "lawbringer"


def test_a_killed_follow_up_begins_anew_and_the_asker_still_goes_on_after_it():
    life = Life().planned(a="")
    task = life.task("a")
    asker = life.begin(task)
    life.say(task, "needs-role-followup", role="spiritmender", reason="lint", resume=True)
    life.end(task)
    life.begin(task)
    life.kill(task)
    assert life.run(task).role == "spiritmender"
    life.turn(task)
    assert (life.run(task).role, life.run(task).session) == ("codeweaver", asker.session)


# A person takes over


def at_terminal(life, task):
    life.ask("start", task=task, default_kind="claude")
    run = life.run(task)
    if run.agent:
        life.record(taken_over(life.world, run, at=life.now))
    return life.run(task)


def test_a_step_that_a_person_finished_at_a_terminal_is_complete_when_it_lands():
    life = Life().planned(a="")
    task = life.task("a")
    life.turn(task, "needs-role-followup", role="spiritmender", resume=True)
    run = at_terminal(life, task)
    life.record(finished_by_hand(life, run))
    assert [w.state for w in life.world.positions.values() if w.task == task] == [
        "in_progress",
        "dropped",
    ]
    life.land(task)
    assert life.position(task).state == "complete"
    assert life.run(ROOT).role == "lawbringer"


def finished_by_hand(life, run):
    checked = moved(run, "done", to="reviewing", at=life.now)
    world = apply_all(life.world, [checked])
    return [
        checked,
        *completed(
            world, world.runs[run.id], lead_of(world, world.runs[run.id]), "by-hand", at=life.now
        ),
    ]


def test_a_blocked_step_that_a_person_finished_counts_as_complete():
    life = Life().planned(a="")
    task = life.task("a")
    for _ in range(4):
        life.begin(task)
        life.end(task)
    assert life.position(task).state == "blocked"
    run = at_terminal(life, task)
    life.record(finished_by_hand(life, run))
    assert life.question.state == "withdrawn"
    life.land(task)
    assert life.position(task).state == "complete"


def test_a_step_that_a_person_gives_back_goes_on_in_its_role():
    life = Life().planned(a="")
    task = life.task("a")
    run = at_terminal(life, task)
    assert (life.world.terminals[run.id].name, run.role) == ("crew-2", "codeweaver")
    life.ask("start", task=task, default_kind="claude", headless=True)
    life.record(closed(life.world, life.run(task), at=life.now))
    assert life.run(task).role == "codeweaver"
    assert not life.world.terminals[run.id].is_up
    life.turn(task)
    assert life.position(task).stage == "ward"


def test_an_answer_counts_also_while_a_person_sits_at_the_terminal():
    life = Life().planned(a="")
    task = life.task("a")
    life.turn(task, "needs-user-input")
    at_terminal(life, task)
    life.ask("answer", question=life.question.id, text="this one")
    assert life.position(task).state == "in_progress"


def test_a_request_cannot_be_completed_by_hand_before_its_steps_are():
    life = Life().planned(a="")
    run = replace(life.run(ROOT), state="working")
    terminal = Terminal(id=run.id, task=ROOT, state="open", pid=7)
    runs = {**life.world.runs, run.id: run}
    life.world = replace(life.world, runs=runs, terminals={run.id: terminal})
    with raises_code(Conflict, "quest_unfinished", "quest 1"):
        life.ask("complete", task=ROOT)


# The end


def test_a_step_that_a_person_closes_holds_nobody_up():
    life = Life(slots=2).planned(a="", b="a")
    life.ask("close", task=life.task("a"))
    assert life.state("b") == "in_progress"
    life.kill(life.task("a"))
    life.finish("b")
    assert life.run(ROOT).role == "lawbringer"


def test_a_step_whose_file_is_gone_is_given_up_and_holds_nobody_up():
    life = Life().planned(a="", b="a", c="")
    lost = life.task("a")
    life.turn(lost, "needs-user-input")
    life.record([noted(life.world.tasks[lost], "gone", at=life.now, gone=True)])
    assert (life.state("a"), life.run(lost).state) == ("closed", "failed")
    assert life.question.state == "withdrawn"
    assert life.task("b") in life.working
    life.finish("b")
    life.finish("c")
    assert life.run(ROOT).role == "lawbringer"


def test_tasks_whose_files_are_away_for_a_while_go_on_when_they_are_back():
    """Another branch is checked out: all that nobody needs the text for goes on meanwhile."""
    life = Life().planned(a="", b="a")
    life.begin(life.task("a"))
    away = [life.task("a"), life.task("b"), ROOT]
    life.record([noted(life.world.tasks[t], "missing", at=1.0, missing_at=1.0) for t in away])
    life.say(life.task("a"), "complete", summary="all done")
    life.end(life.task("a"))
    life.look(life.task("a"))
    life.gate(life.task("a"))
    assert not any(isinstance(due, Step) for due in life.due()), "a new session has no text"
    assert (life.quest.state, life.working) == ("open", {life.task("a")})
    life.record([noted(life.world.tasks[task], "edited", at=9.0, missing_at=None) for task in away])
    life.turn(life.task("a"))
    life.land(life.task("a"))
    life.finish("b")
    assert life.run(ROOT).role == "lawbringer"


def test_a_request_whose_file_stays_away_is_given_up():
    life = Life().planned(a="")
    life.record([noted(life.world.tasks[ROOT], "missing", at=life.now, missing_at=life.now)])
    left = life.now + GIVEN_UP_AFTER_S - 1
    assert waits(life.world, life.now, rules=life.rules) == {None: left}
    life.now = left - 1
    assert decide(life.world, Clock(life.now), rules=life.rules) == []
    life.record([])
    assert (life.quest.state, life.state("a")) == ("cancelled", "closed")


def test_whoever_works_at_a_task_whose_file_is_gone_is_ended():
    life = Life()
    life.begin(ROOT)
    life.record([noted(life.world.tasks[ROOT], "gone", at=life.now, gone=True)])
    assert (life.quest.state, life.world.tasks[ROOT].state) == ("cancelled", "closed")
    assert Kill(subject="A") in life.due()
    life.kill(ROOT)
    assert life.working == set()


def test_whoever_cancels_a_quest_closes_all_its_tasks_and_ends_whoever_works_there():
    life = Life().planned(a="", b="", c="a")
    life.finish("b")
    life.turn(life.task("a"), "needs-user-input")
    life.ask("quest_cancel", quest=ROOT)
    assert life.quest.state == "cancelled"
    states = {step.key: life.world.tasks[step.task].state for step in life.quest.steps}
    assert states == {"a": "closed", "b": "merged", "c": "closed"}
    assert life.question.state == "withdrawn"
    positions = {position.task: position.state for position in life.world.positions.values()}
    assert positions == {
        ROOT: "dropped",
        life.task("a"): "dropped",
        life.task("b"): "complete",
        life.task("c"): "dropped",
    }


def test_whoever_works_at_a_cancelled_quest_is_to_be_killed_which_keeps_their_work():
    life = Life().planned(a="", b="")
    life.begin(life.task("a"))
    life.ask("quest_cancel", quest=ROOT)
    assert {a.task for a in life.world.agents.values() if a.killing} == life.working != set()


def test_a_request_whose_task_is_closed_or_gone_is_cancelled():
    given_up, gone = Life().planned(a=""), Life().planned(a="")
    given_up.ask("close", task=ROOT)
    gone.record([noted(gone.world.tasks[ROOT], "gone", at=gone.now, gone=True)])
    for life in (given_up, gone):
        assert (life.quest.state, life.state("a")) == ("cancelled", "closed")


def test_a_task_made_for_a_step_that_the_plan_lost_is_closed():
    life = Life().planned(a="")
    stray = Task(id="9", title="Do x", quest=ROOT, target="crew-1", written="todo")
    life.world = replace(life.world, tasks={**life.world.tasks, "9": stray})
    life.record([])
    assert life.world.tasks["9"].state == "closed"


def test_a_task_whose_step_is_just_being_told_is_no_stray():
    life = Life().planned(a="")
    unwritten = tuple(PlanItem(key="b", title="Do b"))
    quest = replace(life.quest, plan=(*life.quest.plan, unwritten))
    stray = Task(id="9", title="Do b", quest=ROOT, target="crew-1", written="todo")
    world = replace(life.world, quests={ROOT: quest}, tasks={**life.world.tasks, "9": stray})
    assert follow(world, life.now) == []
