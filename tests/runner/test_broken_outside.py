"""The outside fails: no program, no space, no right to write. It is said, and nothing hangs."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.conftest import need
from crew.domain.requests import Request
from crew.runner.run_crew import make_runner
from crew.store.row_repair import differences
from runner.scene import PATIENCE_S, DriverScene, check_the_end, until
from runner.stories import done, work

SIMPLE = {"default": {"steps": [done(*work("a.txt"))]}}


@pytest.fixture
def scene(make_scene) -> DriverScene:
    return make_scene(SIMPLE, tasks=["simple"], agents=1)


def _mount(*arguments: str) -> None:
    mounted = subprocess.run(["mount", *arguments], capture_output=True, check=False)
    need(not mounted.returncode, "mount")


@pytest.fixture
def small_disk(scene) -> Iterator[Callable[[str], None]]:
    """`.crew` on a disk of its own; call it with a size to change it, or with `ro`."""
    folder = scene.path / ".crew"
    config = (folder / "config.toml").read_text()
    _mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder))
    (folder / "config.toml").write_text(config)
    yield lambda option: _mount("-o", f"remount,{option}", str(folder))
    try:
        until(lambda: not _users(folder), what="an end of every process that uses the disk")
    except AssertionError:
        pytest.fail(f"still in use: {_users(folder)}")
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _users(folder: Path) -> list[str]:
    """Other processes that have something of the folder open; this one reads its database."""
    users = []
    others = (one for one in Path("/proc").glob("[0-9]*") if one.name != str(os.getpid()))
    for link in (link for process in others for link in _links(process)):
        with contextlib.suppress(OSError):
            if str(link.readlink()).startswith(str(folder)):
                users.append(f"{link}: {(Path(*link.parts[:3]) / 'cmdline').read_bytes()!r}")
    return users


def _links(process: Path) -> list[Path]:
    """What a process has open; a process that has just ended has nothing open."""
    try:
        return [process / "cwd", *(process / "fd").iterdir()]
    except OSError:
        return []


def _fill(folder: Path) -> None:
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return


def test_a_full_disk_ends_the_run_in_words_and_loses_nothing(scene, small_disk):
    base = scene.git("rev-parse", "HEAD")
    scene.make().db.close()
    _fill(scene.path / ".crew")
    answer = scene.run(code=1)
    assert "full" in answer["error"] + answer["hint"]
    (scene.path / ".crew" / "filler").unlink()
    scene.run()
    check_the_end(scene, base=base, merged=1)


def test_a_disk_that_fills_up_during_a_step_loses_nothing(scene, small_disk):
    """The agent's own log fills it; what it cannot log it must not be believed."""
    base = scene.git("rev-parse", "HEAD")
    script = {"default": {"steps": [[{"flood": 3_000_000}], done(*work("a.txt"))]}}
    (scene.path.parent / "script.json").write_text(json.dumps(script))
    running = scene.start()
    until(lambda: shutil.disk_usage(scene.path / ".crew").free < 65_536, what="a full disk")
    assert scene.git("rev-parse", "main") == base
    small_disk("size=64m")
    assert running.wait(timeout=PATIENCE_S) == 0, scene.said()
    workplace = scene.workplace
    assert differences(workplace.db) == []
    workplace.db.close()
    check_the_end(scene, base=base, merged=1)


def test_a_read_only_crew_folder_is_told(scene, small_disk):
    scene.make().db.close()
    small_disk("ro")
    answer = scene.run(code=1)
    assert "Read-only" in answer["error"]
    small_disk("rw")
    assert scene.run()["tasks"] == {"1": "merged"}


def test_a_locked_database_is_told_as_something_that_passes(scene):
    base = scene.git("rev-parse", "HEAD")
    scene.make().db.close()
    scene.options["lock_wait_s"] = 0.2
    holder = sqlite3.connect(scene.path / ".crew" / "crew.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    answer = scene.run(code=75)
    assert "locked by another program" in answer["error"]
    holder.execute("ROLLBACK")
    holder.close()
    scene.run()
    check_the_end(scene, base=base, merged=1)


def test_a_database_locked_in_the_middle_of_a_step_loses_nothing(make_scene, tmp_path):
    lock = (
        "import sqlite3, time; db = sqlite3.connect('PLACE/0/repo/.crew/crew.db', timeout=10);"
        "db.execute('BEGIN IMMEDIATE'); open('PLACE/locked', 'w'); time.sleep(1)"
    )
    act = f'test -e PLACE/locked || python3 -c "{lock}"'
    script = {"default": {"steps": [done({"run": act}, *work("a.txt"))] * 2}}
    scene = make_scene(script, tasks=["simple"], agents=1)
    base = scene.git("rev-parse", "HEAD")
    scene.run()
    assert (tmp_path / "locked").exists()
    check_the_end(scene, base=base, merged=1)


def test_no_task_is_given_to_an_agent_whose_program_is_missing(make_scene):
    config = '[agents.ghost]\ncommand_template = "no-such-agent --go"\n'
    scene = make_scene(tasks=["simple"], agents=1, kind="ghost", config=config)
    assert scene.run()["tasks"] == {"1": "todo"}
    assert scene.world.agents["A"].state == "idle"
    assert scene.world.runs == {}, "nothing is tried that cannot succeed"


def test_no_task_is_given_to_an_agent_that_is_not_configured(make_scene):
    scene = make_scene(tasks=["simple"], agents=1, kind="nobody")
    assert scene.run()["tasks"] == {"1": "todo"}
    assert scene.world.agents["A"].state == "idle"
    assert scene.world.runs == {}


def test_a_missing_gate_program_is_named_and_nothing_lands(make_scene):
    config = '[complete]\ncommand = "no-such-gate"\n'
    scene = make_scene(SIMPLE, tasks=["simple"], agents=1, config=config)
    base = scene.git("rev-parse", "HEAD")
    assert scene.run()["tasks"] == {"1": "error"}
    assert "no-such-gate" in scene.world.runs["1.1"].error
    assert scene.git("rev-parse", "main") == base
    assert (scene.worktrees / "1" / "a.txt").exists()


def test_a_gate_that_disappears_before_the_merge_ends_the_run_in_words(make_scene):
    gate = "PLACE/gate"
    script = {"default": {"steps": [done(*work("a.txt"))]}}
    config = f'[complete]\ncommand = "{gate}"\n'
    once = '#!/bin/sh\nrm "$0"\n'
    scene = make_scene(script, tasks=["simple"], agents=1, config=config, programs={"gate": once})
    base = scene.git("rev-parse", "HEAD")
    assert scene.run()["tasks"] == {"1": "done"}
    queue = scene.world.queues["main"]
    assert "gate" in queue.waiting
    assert "[complete]" in queue.remedy
    program = scene.path.parent.parent / "gate"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    scene.run()
    check_the_end(scene, base=base, merged=1)


def test_a_config_that_cannot_be_read_names_the_key(scene):
    scene.write({".crew/config.toml": "[run]\nmax_stepz = 3\n"})
    answer = scene.run(code=2)
    assert "max_steps" in answer["error"] + answer["hint"]


def test_a_worktree_folder_that_belongs_to_somebody_else_stays_theirs(scene):
    mine = scene.worktrees / "1" / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine\n")
    scene.run()
    assert mine.read_text() == "mine\n"
    agent = scene.world.agents["A"]
    assert agent.state == "stuck"
    assert "not a worktree that crew made" in agent.last_error
    shutil.rmtree(mine.parent)
    scene.options["first"] = [["retry", {"subject": "A"}]]
    assert scene.run()["tasks"] == {"1": "merged"}


def test_a_request_that_is_nested_without_end_is_refused_and_the_next_one_is_heard(scene):
    nested: list[object] = []
    for _ in range(10_000):
        nested = [nested]
    workplace = scene.make()
    runner = make_runner(workplace)
    refused = runner.reply_to(Request(verb="message", args={"task": "1", "text": nested}))
    assert refused["error"]["hint"]
    assert runner.reply_to(Request(verb="look", args={})) == {"reply": None}
    workplace.db.close()
