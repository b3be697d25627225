"""`.crew` is deleted while a runner is up, as by `git clean -fdx`: no task is lost."""

import os
import random
import subprocess
import time

import pytest

from crew.store.database import MADE_MEANWHILE
from front.conftest import CREW, PATIENCE_S, CliScene, until

SLOW = """\
echo "$CREW_TASK_ID" > "begun-$CREW_TASK_ID"
[ -e "begun-$CREW_TASK_ID.kept" ] || { git add -A && git commit -q -m begun; }
sleep 1
echo "$CREW_TASK_ID" > "file-$CREW_TASK_ID"
git add -A && git commit -q -m "task $CREW_TASK_ID"
echo DONE
"""
SEED = int(os.environ.get("CREW_SEED", "0"))


def clean(scene):
    scene.git("clean", "-fdxq")
    assert not (scene.root / ".crew" / "crew.db").exists()


def described(scene):
    """Everything of the tasks that a person wrote."""
    views = [
        scene.ok("show", one["id"], "--json").json for one in scene.ok("list", "-a", "--json").json
    ]
    names = ("id", "title", "description", "labels", "priority", "deps", "comments")
    return [{name: view.get(name) for name in names} for view in views]


@pytest.fixture
def busy(scene):
    """Three tasks, the first at work with what it has not committed; the texts of all are long."""
    scene.plan("1", "wait")
    scene.ok("new", "--title", "first", "--body", "the first\n\nwith a text")
    scene.ok("new", "--title", "second", "--after", "1", "--priority", "0", "--label", "urgent")
    scene.ok("new", "--title", "third")
    scene.ok("comment", "2", "mind the gap")
    return scene


@pytest.fixture
def at_work(busy, running):
    runner = running("--drain")
    until((busy.folder / "waits-1").exists)
    return runner


def ended(process):
    out, err = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in out + err
    return process.returncode, err


def drained(scene: CliScene):
    scene.let_go()
    assert scene.crew("run", "--drain").code == 0
    assert {one["status"] for one in scene.ok("list", "-a", "--json").json} == {"merged"}
    files = set(scene.git("ls-tree", "--name-only", "main").split())
    assert {"file-1", "file-2", "file-3"} <= files
    findings = scene.crew("doctor", "--json").json
    assert [one for one in findings if one["state"] != "ok" and one["check"] != "sandbox"] == []


def test_a_runner_writes_its_folder_again_and_the_next_one_continues(busy, at_work):
    before, config = described(busy), (busy.root / ".crew/config.toml").read_text()
    clean(busy)
    code, err = ended(at_work)
    assert code == 1
    assert "3 tasks" in err
    assert "crew run" in err
    assert described(busy) == before
    assert (busy.root / ".crew/config.toml").read_text() == config
    drained(busy)
    assert busy.ok("new", "--title", "fourth").out.split()[0].strip("#:") == "4"


def test_tasks_that_git_tracks_stay_as_they_are(busy, at_work):
    busy.git("add", "-f", ".crew/tasks")
    busy.git("commit", "-q", "-m", "tasks")
    file = busy.root / ".crew/tasks/default/3.md"
    content = file.read_bytes()
    clean(busy)
    assert ended(at_work)[0] == 1
    assert file.read_bytes() == content
    drained(busy)


def test_a_crew_that_was_made_meanwhile_is_set_aside(busy, at_work):
    before = described(busy)
    os.kill(at_work.pid, 19)
    clean(busy)
    busy.ok("init")
    busy.crew("new", "--title", "made meanwhile")
    os.kill(at_work.pid, 18)
    code, err = ended(at_work)
    assert code == 1
    assert MADE_MEANWHILE in err
    assert (busy.root / ".crew" / f"crew.db.{MADE_MEANWHILE}").exists()
    found = described(busy)
    assert [one["title"] for one in found[1:]] == [one["title"] for one in before[1:]]


def test_a_repository_that_is_moved_ends_the_runner_with_a_sentence(busy, at_work):
    moved = CliScene(busy.root.parent / "moved", busy.folder)
    busy.root.rename(moved.root)
    code, err = ended(at_work)
    assert code == 1
    assert str(busy.root) in err
    assert not busy.root.exists()
    drained(moved)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_runner_that_dies_while_it_writes_keeps_the_tasks(busy, when):
    run = [CREW, "run", "--drain"]
    env = {**os.environ, "CREW_CRASH_AT": f"store.save_again.{when}"}
    with (busy.folder / "out").open("w") as out:
        runner = subprocess.Popen(run, cwd=busy.root, env=env, stdout=out, stderr=out)
    until((busy.folder / "waits-1").exists)
    before = described(busy)
    clean(busy)
    assert runner.wait(timeout=PATIENCE_S) == -9
    if when == "before":
        busy.ok("init")
    assert [one["description"] for one in described(busy)] == [one["description"] for one in before]
    if when == "after":
        drained(busy)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(SEED * 3 + number, marks=pytest.mark.faults if number else ())
        for number in range(3)
    ],
)
def test_at_any_moment_of_a_run_nothing_is_lost(busy, running, seed):
    (busy.folder / "agent.sh").write_text(SLOW)
    before, pause = described(busy), random.Random(seed)
    for _ in range(2):
        runner = running("--drain")
        time.sleep(pause.uniform(0, 1.2))
        clean(busy)
        code, err = ended(runner)
        assert code == 1, err
        assert described(busy) == before
    drained(busy)
