"""What landed is said to be merged once its branch has it, also after a kill in between."""

from dataclasses import replace

import pytest

from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.task import Task
from crew.domain.world import moved, with_rows
from crew.front.cli.crew.merge import waits_for
from crew.runner.run_crew import make_runner
from crew.store.fact_log import load_world
from crew.workplace import find_workplace
from front.conftest import PATIENCE_S, until

KILLED = -9
LANDED = {"CREW_CRASH_AT": "git.sync_journal.before"}
"""The moment right after a task has landed, before anything of its delivery."""

WAYS = (("resume", "{task}"), ("merge", "{task}"), ("run", "--drain", "-q"), ("doctor", "--repair"))


@pytest.mark.timeout(300)
def test_a_crew_killed_between_landing_and_delivery_says_so_and_any_start_delivers(scene):
    for number, way in enumerate(WAYS, start=1):
        task = str(number)
        scene.ok("new", "--title", "one")
        assert scene.crew("run", "--drain", "-q", **LANDED).code == KILLED
        assert scene.git("ls-tree", "--name-only", "main", f"file-{task}") == ""
        assert scene.status(task) != "merged"
        _check_told(scene, task)
        scene.ok(*(word.format(task=task) for word in way))
        assert scene.git("show", f"main:file-{task}") == task
        assert scene.status(task) == "merged"
    assert "landed" not in scene.ok("ps").err
    scene.ok("doctor")


def _check_told(scene, task: str) -> None:
    told = f"landed, and not in main yet: {task} (`crew merge {task}` delivers)"
    assert told in scene.ok("ps").err
    listed = scene.ok("list")
    assert told in listed.err
    assert "(landed, not in main yet)" in listed.out
    assert "landed; waits for its delivery to main" in scene.ok("show", task).out
    shown = scene.ok("show", task, "--json").json
    assert shown["status"] == "done"
    assert shown["delivery"] == {"target": "main", "reason": None, "remedy": None}
    doctor = scene.crew("doctor")
    assert doctor.code == 1
    assert f"main does not have what landed for it: task {task}" in doctor.out


def test_the_branch_has_a_task_as_soon_as_it_is_said_to_be_merged(scene, running):
    running()
    for task in ("1", "2", "3"):
        scene.ok("new", "--title", "one")
        scene.ok("poll", task, "--status", "merged")
        assert scene.git("show", f"main:file-{task}") == task


def test_a_blocked_checkout_holds_up_neither_dependents_nor_the_truth(scene):
    (scene.root / "file-1").write_text("mine\n")
    scene.ok("new", "--title", "one")
    scene.ok("new", "--title", "two", "--after", "1")
    said = scene.crew("run", "--drain", "--json")
    assert said.code == 75, said
    assert (said.json["merged"], said.json["landed"]) == ([], ["1", "2"])
    assert said.json["not_merged"] == []
    shown = scene.ok("show", "1", "--json").json
    assert shown["status"] == "done"
    assert "file-1" in shown["delivery"]["reason"]
    scene.refused(5, "awaits_delivery", "close", "1")
    (scene.root / "file-1").unlink()
    scene.ok("merge", "2")
    assert scene.git("show", "main:file-1") == "1"
    assert [scene.status("1"), scene.status("2")] == ["merged", "merged"]


def test_doctor_offers_to_undo_no_decision_of_a_person(scene):
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain", "-q")
    scene.git("reset", "-q", "--hard", "HEAD~1")
    scene.ok("doctor")
    scene.ok("doctor", "--repair")
    assert scene.git("ls-tree", "--name-only", "main", "file-1") == ""


def test_merges_at_once_are_made_by_the_first_of_them(scene):
    workplace = find_workplace(scene.root)
    runner = make_runner(workplace)
    for task in ("1", "2", "3"):
        scene.ok("new", "--title", "one")
        _complete(scene, runner, task)
    workplace.db.close()
    merges = [scene.start("merge", task) for task in ("1", "2", "3")]
    said = [merge.communicate(timeout=PATIENCE_S) for merge in merges]
    assert [merge.returncode for merge in merges] == [0, 0, 0], said
    assert [scene.git("show", f"main:work-{task}") for task in ("1", "2", "3")] == ["x"] * 3


def _complete(scene, runner, task: str) -> None:
    """The task is done with a commit of its own, and in no merge queue."""
    runner.take_in()
    row = runner.engine.world.tasks[task]
    scene.git("switch", "-q", "-c", f"crew-{task}")
    (scene.root / f"work-{task}").write_text("x\n")
    scene.git("add", f"work-{task}")
    scene.git("commit", "-q", "-m", "work")
    commit = scene.git("rev-parse", "HEAD")
    scene.git("switch", "-q", "main")
    begun = moved(row, "started", to="in_progress", at=1.0)
    row = replace(row, state="in_progress")
    runner.engine.record([begun, moved(row, "completed", to="done", at=2.0, head=commit)])


WAITS = MergeQueue(id="main", chain=(("1", "head", "commit"),), waiting="a file is in the way")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"queued_at": None}, "waits for another crew command to end"),
        ({"id": "2"}, "waits for its turn in the merge queue of main: a file is in the way"),
        ({}, "is tested together with what landed for main: a file is in the way"),
        (
            {"landed_commit": "c"},
            "has landed; its delivery to main is under way: a file is in the way",
        ),
    ],
)
def test_whoever_merges_is_told_what_it_waits_for(changes, told):
    task = replace(Task(id="1", state="done", target="main", queued_at=1.0), **changes)
    assert waits_for(with_rows([task, WAITS]), task.id) == told


def _land_on(scene, target: str) -> str:
    """Make the branch if there is none, and land a task on it; the task's id."""
    if not scene.git("branch", "--list", target):
        scene.git("branch", target)
    task = scene.ok("new", "--title", "one", "--base", target).out.strip()
    scene.ok("run", "--drain", "-q")
    assert scene.status(task) == "merged"
    return task


def test_a_branch_that_was_merged_and_deleted_blocks_no_branch_below_its_name(scene):
    task = _land_on(scene, "feature")
    scene.git("merge", "-q", "feature")
    scene.git("branch", "-d", "feature")
    below = _land_on(scene, "feature/login")
    assert scene.git("show", f"main:file-{task}") == task
    assert scene.git("show", f"feature/login:file-{below}") == below


def test_a_branch_that_was_merged_and_deleted_leaves_nothing_to_deliver(scene):
    _land_on(scene, "feature")
    scene.git("merge", "-q", "feature")
    scene.git("branch", "-d", "feature")
    scene.ok("doctor")
    scene.ok("doctor", "--repair")
    assert scene.ok("run", "--drain", "--json").json["waiting"] == []
    assert scene.git("for-each-ref", "refs/crew/landed/feature") == ""


def test_a_branch_that_was_deleted_without_a_merge_leaves_nothing_to_deliver(scene):
    task = _land_on(scene, "feature")
    scene.git("branch", "-D", "feature")
    scene.ok("doctor", "--repair")
    scene.ok("run", "--drain", "-q")
    assert scene.git("show", f"refs/crew/landed/feature:file-{task}") == task


@pytest.mark.parametrize("way", [("run", "--drain"), ("merge", "1"), ("doctor", "--repair")])
def test_a_landing_that_the_person_merges_instead_of_its_deleted_branch_is_merged(scene, way):
    scene.git("switch", "-q", "-c", "feature")
    scene.ok("new", "--title", "one")
    assert scene.crew("run", "--drain", "-q", **LANDED).code == KILLED
    scene.git("switch", "-q", "main")
    scene.git("branch", "-D", "feature")
    said = scene.crew("run", "--drain", "--json")
    assert said.code == 75, said
    remedy = said.json["waiting"][0]["remedy"]
    assert remedy.endswith("git branch feature refs/crew/landed/feature")
    scene.git("merge", "-q", "refs/crew/landed/feature")
    scene.ok(*way)
    assert scene.status("1") == "merged"
    scene.ok("doctor")


# What only a person can change


def _done(scene, task="1", *flags: str) -> None:
    """A task whose work is done and in the queue of its target, where nothing has landed of it."""
    scene.ok("new", "--title", "one", *flags)
    target = flags[-1] if flags else "main"
    is_first = scene.git("for-each-ref", f"refs/crew/landed/{target}") == ""
    crash = f"git.advance.before:{2 if is_first else 1}"  # first the ref itself is made
    assert scene.crew("run", "--drain", "-q", CREW_CRASH_AT=crash).code == KILLED
    assert scene.ok("show", task, "--json").json["status"] == "done"


def _committed(scene, name: str) -> None:
    (scene.root / name).write_text("mine\n")
    scene.git("add", name)
    scene.git("commit", "-qm", name)


def _forged(scene):
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain", "-q")
    _done(scene, "2")
    commit = scene.git("commit-tree", "-m", "not crew's", "HEAD^{tree}", "-p", "HEAD")
    scene.git("update-ref", "refs/crew/landed/main", commit)
    return "2", "where crew did not put it", "git update-ref refs/crew/landed/main"


def _no_target(scene):
    scene.git("branch", "feature")
    _done(scene, "1", "--base", "feature")
    scene.git("branch", "-D", "feature")
    return "1", "feature", "git branch feature"


def _red_together(scene):
    scene.configure('[complete]\ncommand = "! ( test -e file-1 && test -e bad )"\n')
    scene.ok("new", "--title", "one")
    assert scene.crew("run", "--drain", "-q", **LANDED).code == KILLED
    _committed(scene, "bad")
    return "1", "are red together", "git merge refs/crew/landed/main"


def _no_gate_program(scene):
    _done(scene)
    _committed(scene, "other")
    scene.configure('[complete]\ncommand = "no-such-program"\n')
    return "1", "cannot be run", "[complete] command"


def _file_in_the_way(scene):
    _done(scene)
    (scene.root / "file-1").write_text("mine\n")
    return "1", "file-1", ""


OBSTACLES = (_forged, _no_target, _red_together, _no_gate_program, _file_in_the_way)


@pytest.mark.parametrize("runs", [False, True], ids=["alone", "beside"])
@pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda one: one.__name__.strip("_"))
def test_a_merge_names_what_only_a_person_can_change_and_ends(scene, running, obstacle, runs):
    task, why, remedy = obstacle(scene)
    if runs:
        running()
    said = scene.crew("merge", task)
    assert said.code == 75, said
    assert why in said.err, said
    assert remedy in said.err.split("hint:")[1], said


@pytest.mark.parametrize("runs", [False, True], ids=["alone", "beside"])
def test_a_merge_that_comes_to_ask_a_person_ends_with_the_question(scene, running, runs):
    scene.configure('[merge]\nconflict = "ask"\n')
    scene.plan("1", "clash")
    scene.ok("new", "--title", "one")
    assert scene.crew("run", "--drain", CREW_CRASH_AT="git.commit_merge.before").code == KILLED
    _committed(scene, "shared")
    if runs:
        running()
    said = scene.refused(5, "waits_for_answer", "merge", "1")
    assert "`crew inbox q1`" in said.hint


def test_a_merge_that_was_held_up_is_tried_again_once_the_way_is_clear(scene):
    task, *_ = _red_together(scene)
    assert scene.crew("merge", task).code == 75
    scene.git("rm", "-q", "bad")
    scene.git("commit", "-qm", "good again")
    scene.ok("merge", task)
    assert scene.status(task) == "merged"


# Another target for work that is under way


def test_a_queued_task_moves_to_the_queue_of_its_new_target(scene):
    """The old branch gets nothing of it, though its merge was tested there and may land."""
    scene.git("branch", "feature")
    _done(scene)
    scene.ok("edit", "1", "--base", "feature")
    assert scene.ok("show", "1", "--json").json["base"] == "feature"
    scene.ok("run", "--drain", "-q")
    _is_on_feature_alone(scene)


def test_a_task_whose_merge_is_being_tested_moves_beside_a_runner_too(scene, running):
    scene.git("branch", "feature")
    gate = scene.folder / "gate"
    gate.touch()
    scene.configure(f'[complete]\ncommand = "until [ -e {gate} ]; do sleep 0.05; done"\n')
    scene.ok("new", "--title", "one")
    assert scene.crew("run", "--drain", CREW_CRASH_AT="git.commit_merge.before").code == KILLED
    gate.unlink()
    running()
    until(lambda: "is tested together" in waits_for(load_world(_db(scene)), "1"))
    scene.ok("edit", "1", "--base", "feature")
    gate.touch()
    until(lambda: scene.status("1") == "merged")
    _is_on_feature_alone(scene)


def _db(scene):
    return find_workplace(scene.root).db


def _is_on_feature_alone(scene) -> None:
    assert scene.git("show", "feature:file-1") == "1"
    assert scene.git("ls-tree", "--name-only", "main", "file-1") == ""
    assert scene.git("ls-tree", "--name-only", "refs/crew/landed/main", "file-1") == ""
    scene.ok("doctor")


def test_a_task_that_is_at_work_lands_on_its_new_target(scene, running):
    scene.git("branch", "feature")
    scene.plan("1", "wait")
    scene.ok("new", "--title", "one")
    running()
    until(lambda: scene.agent()["status"] == "working")
    scene.ok("edit", "1", "--base", "feature")
    scene.let_go()
    until(lambda: scene.status("1") == "merged")
    _is_on_feature_alone(scene)


def test_the_target_of_landed_and_merged_work_is_not_changed_any_more(scene):
    scene.git("branch", "feature")
    scene.ok("new", "--title", "one")
    assert scene.crew("run", "--drain", "-q", **LANDED).code == KILLED
    refused = scene.refused(5, "awaits_delivery", "edit", "1", "--base", "feature")
    assert "task 1 has landed and waits for its delivery to main" in refused.message
    scene.ok("merge", "1")
    refused = scene.refused(5, "task_over", "edit", "1", "--base", "feature")
    assert "git cherry-pick" in refused.hint
    assert scene.ok("show", "1", "--json").json["base"] != "feature"
    scene.refused(3, "unknown_branch", "edit", "1", "--base", "no-such-branch")


def test_a_new_target_settles_what_a_conflict_with_the_old_one_asked(scene):
    scene.git("branch", "feature")
    scene.configure('[merge]\nconflict = "ask"\n')
    scene.plan("1", "clash")
    scene.ok("new", "--title", "one")
    assert scene.crew("run", "--drain", CREW_CRASH_AT="git.commit_merge.before").code == KILLED
    _committed(scene, "shared")
    scene.refused(5, "waits_for_answer", "merge", "1")
    scene.ok("edit", "1", "--base", "feature")
    assert scene.ok("inbox", "--json").json == []
    scene.ok("merge", "1")
    assert scene.git("show", "feature:shared") == "1"
    assert scene.git("show", "main:shared") == "mine"
