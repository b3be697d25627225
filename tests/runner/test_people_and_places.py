"""People who work in the same repository, and repositories that are not like any other."""

import subprocess
import time

import pytest

from runner.scene import PATIENCE_S, DriverScene, check_the_end, until
from runner.stories import done, work

SIMPLE = {"default": {"steps": [done(*work("shared.txt", "by an agent\n"), *work("new.txt"))]}}


@pytest.fixture
def scene(make_scene) -> DriverScene:
    return make_scene(SIMPLE, tasks=["simple"], agents=1)


def _status(scene: DriverScene) -> str:
    return scene.git("status", "--porcelain", "--untracked-files=no")


def test_delivery_goes_around_edits_of_other_files(scene):
    scene.commit({"other.txt": "other\n", "staged.txt": "staged\n"})
    scene.write({"other.txt": "edited\n", "staged.txt": "edited\n", "untracked.txt": "mine\n"})
    scene.git("add", "staged.txt")
    scene.run()
    assert (scene.path / "new.txt").exists()
    assert _status(scene) == "M other.txt\nM  staged.txt"
    texts = [(scene.path / name).read_text() for name in ("other.txt", "staged.txt")]
    assert texts == ["edited\n", "edited\n"]
    assert (scene.path / "untracked.txt").read_text() == "mine\n"


def test_delivery_waits_for_edits_of_the_same_file_and_says_so(scene):
    base = scene.git("rev-parse", "HEAD")
    scene.write({"shared.txt": "edited by a person\n"})
    assert scene.run()["tasks"] == {"1": "done"}
    assert scene.world.tasks["1"].awaits_delivery
    line = scene.world.queues["main"]
    assert "shared.txt" in line.waiting
    assert "git merge refs/crew/landed/main" in line.remedy
    assert scene.git("rev-parse", "HEAD") == base
    assert (scene.path / "shared.txt").read_text() == "edited by a person\n"
    scene.git("checkout", "-q", "shared.txt")
    scene.run()
    check_the_end(scene, base=base, merged=1)
    assert scene.world.queues["main"].waiting == ""


def test_an_untracked_file_in_the_way_is_not_overwritten(scene):
    scene.write({"new.txt": "mine, never committed\n"})
    scene.run()
    assert (scene.path / "new.txt").read_text() == "mine, never committed\n"
    assert "new.txt" in scene.world.queues["main"].waiting


def _is_committed(scene: DriverScene, name: str) -> bool:
    """Commit it as a person does, who tries again when git is busy."""
    scene.git("add", name, check=False)
    scene.git("commit", "-qm", name, "--", name, check=False)
    return name in scene.git("log", "--format=%s").splitlines()


def test_a_person_who_commits_while_tasks_land_loses_nothing(make_scene):
    tasks = [f"task {number}" for number in range(6)]
    script = {
        "tasks": {
            title: {"steps": [[{"sleep_s": 0.1}], done(*work(f"{title}.txt"))]} for title in tasks
        }
    }
    is_there = {"run": "until test -e PLACE/somebody; do sleep 0.02; done"}
    script["tasks"][tasks[0]]["steps"].insert(0, [is_there])
    scene = make_scene(script, tasks=tasks, agents=3)
    base = scene.git("rev-parse", "HEAD")
    running = scene.start()
    mine = []
    while running.poll() is None and len(mine) < 12:
        mine.append(f"mine-{len(mine)}.txt")
        scene.write({mine[-1]: f"{mine[-1]}\n"})
        until(lambda: _is_committed(scene, mine[-1]), what="a moment without another's lock")
        (scene.path.parent.parent / "somebody").touch()
        time.sleep(0.15)
    assert running.wait(timeout=PATIENCE_S) == 0, scene.said()
    scene.run()
    for name in [*mine, *(f"{title}.txt" for title in tasks)]:
        assert scene.git("show", f"main:{name}"), name
        assert (scene.path / name).exists()
    landed = "refs/crew/landed/main"
    scene.git("merge-base", "--is-ancestor", landed, "main")
    assert scene.git("rev-list", "--merges", f"{landed}..main") == "", "crew's own has landed"
    check_the_end(scene, base=base, merged=len(tasks), last=landed)


def test_whoever_looks_at_another_branch_takes_no_task_away(make_scene):
    """Tasks that are committed go away with their branch: what runs goes on, what waits waits."""
    holds = {"run": "while ! test -e PLACE/go; do sleep 0.05; done"}
    script = {
        "tasks": {
            "first": {"steps": [[holds], done(*work("first.txt"))]},
            "second": {"steps": [done(*work("second.txt"))]},
        }
    }
    scene = make_scene(script, tasks=["first", "second"], agents=1)
    scene.make().db.close()
    running = scene.start()
    until(lambda: "1.1" in scene.world.runs and scene.world.runs["1.1"].stepping, what="a step")

    def switched() -> bool:
        """Refused where crew wrote a state into a task's file right after the commit."""
        scene.git("add", ".crew/tasks")
        scene.git("commit", "-qm", "tasks", "--", ".crew/tasks", check=False)
        scene.git("switch", "-q", "--orphan", "other", check=False)
        return scene.git("branch", "--show-current") == "other"

    until(switched, what="another branch")
    until(lambda: not any(t.is_there for t in scene.world.tasks.values()), what="missing tasks")
    (scene.path.parent.parent / "go").touch()
    assert running.wait(timeout=PATIENCE_S) == 0, scene.said()
    assert [task.state for task in scene.world.tasks.values()] == ["merged", "todo"]
    scene.git("switch", "-q", "main")
    assert scene.run()["tasks"] == {"1": "merged", "2": "merged"}
    assert [item.status for item in scene.workplace.source.scan().items] == ["merged", "merged"]


def test_commits_of_a_person_that_are_red_with_what_landed_do_not_hang_the_crew(make_scene):
    gate = "! (test -e new.txt && test -e clashing.txt)"
    scene = make_scene(
        SIMPLE, tasks=["simple"], agents=1, config=f'[complete]\ncommand = "{gate}"\n'
    )
    scene.write({"shared.txt": "in the way of the delivery\n"})
    scene.run()
    scene.git("checkout", "-q", "shared.txt")
    mine = scene.commit({"clashing.txt": "alone it is fine\n"})
    scene.run()
    assert scene.git("rev-parse", "main") == mine
    line = scene.world.queues["main"]
    assert "red" in line.waiting
    assert "refs/crew/landed/main" in line.remedy
    scene.git("rm", "-q", "clashing.txt")
    scene.git("commit", "-qm", "not so")
    scene.run()
    assert (scene.path / "new.txt").exists()


def test_whoever_brings_together_what_was_red_together_lets_the_waiting_go_on(make_scene):
    gate = "! (test -e new.txt && test -e clashing.txt)"
    script = {**SIMPLE, "tasks": {"second": {"steps": [done(*work("second.txt"))]}}}
    scene = make_scene(
        script, tasks=["simple"], agents=1, config=f'[complete]\ncommand = "{gate}"\n'
    )
    scene.write({"shared.txt": "in the way of the delivery\n"})
    scene.run()
    scene.git("checkout", "-q", "shared.txt")
    scene.commit({"clashing.txt": "alone it is fine\n"})
    scene.tasks.append({"title": "second"})
    assert scene.run()["tasks"] == {"1": "done", "2": "done"}
    assert scene.world.tasks["1"].awaits_delivery
    assert "red together" in scene.world.queues["main"].waiting
    scene.git("merge", "-q", "--no-commit", "refs/crew/landed/main")
    scene.git("rm", "-q", "-f", "clashing.txt")
    scene.git("commit", "-qm", "brought together")
    assert scene.run()["tasks"] == {"1": "merged", "2": "merged"}
    assert scene.world.queues["main"].waiting == ""
    assert (scene.path / "second.txt").exists()


def test_a_detached_checkout_stays_where_it_is(make_scene):
    scene = make_scene(SIMPLE, tasks=["simple"], agents=1, config='[merge]\ntarget = "main"\n')
    base = scene.git("rev-parse", "HEAD")
    scene.git("checkout", "-q", "--detach")
    scene.run()
    assert scene.git("rev-parse", "HEAD") == base
    assert _status(scene) == ""
    assert scene.git("symbolic-ref", "-q", "HEAD", check=False) == ""
    assert scene.git("show", "main:new.txt") == "x"


def test_a_checkout_on_another_branch_stays_where_it_is(make_scene):
    scene = make_scene(SIMPLE, tasks=["simple"], agents=1, config='[merge]\ntarget = "main"\n')
    scene.git("checkout", "-q", "-b", "topic")
    scene.write({"shared.txt": "half an idea\n"})
    scene.run()
    assert scene.git("symbolic-ref", "HEAD") == "refs/heads/topic"
    assert (scene.path / "shared.txt").read_text() == "half an idea\n"
    assert scene.git("show", "main:shared.txt") == "by an agent"


@pytest.mark.parametrize("name", ["with a space", 'söme ☃ it\'s "quoted"', "-dash $HOME"])
def test_any_folder_name_will_do(make_scene, name):
    scene = make_scene(SIMPLE, tasks=["simple"], agents=1, name=name)
    base = scene.git("rev-parse", "HEAD")
    scene.run()
    check_the_end(scene, base=base, merged=1)


def test_a_repository_with_a_submodule(scene, make_scene):
    inner = make_scene()
    scene.git("submodule", "--quiet", "add", str(inner.path), "inner")
    scene.git("commit", "-qm", "with a submodule")
    base = scene.git("rev-parse", "HEAD")
    scene.run()
    check_the_end(scene, base=base, merged=1)
    assert (scene.path / "inner" / "readme.txt").exists()


def test_failing_hooks_of_the_repository_are_never_run_by_crew(make_scene):
    quiet = "git -c core.hooksPath=/dev/null"
    act = f"echo x > new.txt; {quiet} add new.txt; {quiet} commit -qm new"
    scene = make_scene({"default": {"steps": [done({"run": act})]}}, tasks=["simple"], agents=1)
    hooks = scene.path.parent / "hooks"
    hooks.mkdir()
    for name in (
        *("post-checkout", "reference-transaction", "pre-commit", "post-index-change"),
        *("pre-merge-commit", "commit-msg", "post-merge", "post-commit", "prepare-commit-msg"),
    ):
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\ntouch '{scene.path.parent}/fired-{name}'\nexit 1\n")
        hook.chmod(0o755)
    base = scene.git("rev-parse", "HEAD")
    scene.git("config", "core.hooksPath", str(hooks))
    scene.run()
    assert [path.name for path in scene.path.parent.glob("fired-*")] == []
    scene.git("config", "--unset", "core.hooksPath")
    check_the_end(scene, base=base, merged=1)


def test_a_repository_without_a_commit_is_refused_in_words(make_scene, tmp_path):
    scene = make_scene(SIMPLE)
    empty = DriverScene(path=tmp_path / "empty", options=scene.options)
    empty.path.mkdir()
    empty.git("init", "-q")
    answer = empty.run(code=2)
    assert "commit" in answer["error"] + answer["hint"]


def test_a_landed_ref_that_crew_did_not_move_is_never_delivered(make_scene):
    """The record of landings counts, not the ref, and the way out is named."""
    another = {"tasks": {"another": {"steps": [done(*work("another.txt"))]}}}
    scene = make_scene(SIMPLE | another, tasks=["simple"], agents=1)
    scene.run()
    forged = scene.git("commit-tree", "-m", "forged", "-p", "main", "main^{tree}")
    scene.git("update-ref", "refs/crew/landed/main", forged)
    scene.tasks.append({"title": "another"})
    assert scene.run()["tasks"] == {"1": "merged", "2": "done"}
    assert forged not in scene.git("rev-list", "main").split()
    queue = scene.world.queues["main"]
    assert "where crew did not put it" in queue.waiting
    subprocess.run(queue.remedy, shell=True, cwd=scene.path, check=True)
    assert scene.run()["tasks"] == {"1": "merged", "2": "merged"}
