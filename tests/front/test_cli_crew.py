"""The crew from the command line: spawn, run, stop, kill, retry, merge, clean."""

import contextlib
import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.names import made_ref
from crew.runner.background.detached import start_runner
from crew.system.processes.ownership import find_process
from crew.workplace import find_workplace
from front.conftest import PATIENCE_S, last_run, until
from warm import warm_python

AGENT_FIELDS = set(
    "name kind status task session worktree branch task_assigned_at started_at step_count"  # noqa: SIM905
    " last_step_at total_input_tokens total_output_tokens total_cost_usd error_count retry_at"
    " pid".split()
)


def test_spawn_prints_the_names_of_idle_agents(scene):
    assert scene.ok("spawn").out == "A\n"
    assert scene.ok("spawn", "2").out == "B\nC\n"
    assert scene.ok("spawn", "Ann").out == "Ann\n"
    agents = scene.ok("ps", "--json").json
    assert [a["name"] for a in agents] == ["A", "B", "C", "Ann"]
    assert {a["status"] for a in agents} == {"idle"}
    assert all(set(a) >= AGENT_FIELDS for a in agents)
    state = json.loads((scene.root / ".crew/state.json").read_text())
    assert sorted(state["agents"], key=agents.index) == agents


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["spawn", "A"], 5),
        (["spawn", "0"], 2),
        (["spawn", "-3"], 2),
        (["spawn", "no name"], 2),
        (["spawn", "B", "--agent", "nobody"], 3),
        (["assign", "X", "1"], 3),
        (["assign", "A", "9"], 3),
        (["assign", "A", "2"], 5),
        (["kill", "X"], 3),
        (["kill", "A"], 5),
        (["cleanup", "X"], 3),
        (["retry", "A"], 5),
        (["retry", "77"], 3),
        (["retry", "1"], 5),
        (["merge", "1"], 5),
        (["merge", "77"], 3),
        (["merge", "A"], 3),
        (["peek", "A"], 3),
        (["peek", "nobody"], 3),
        (["logs", "1", "--since", "soon"], 2),
        (["run", "--agents", "0"], 2),
        (["run", "--agent", "nobody"], 3),
        (["restore", "1"], 3),
        (["cost", "--by", "moon"], 2),
    ],
)
def test_a_wrong_call_says_so_with_its_code(scene, args, code):
    scene.ok("spawn", "A")
    scene.ok("new", "--title", "one")
    scene.ok("new", "--title", "two", "--after", "1")
    said = scene.crew(*args)
    assert said.code == code, said
    assert said.out == ""
    assert said.err.startswith("crew: ")


def test_an_unknown_kind_of_agent_is_answered_with_the_known_ones(scene):
    assert "sh" in scene.refused(3, "not_found", "spawn", "--agent", "nobody").hint


def test_drain_merges_everything_in_order_and_ends_with_0(scene):
    scene.ok("new", "--title", "one")
    scene.ok("new", "--title", "two", "--after", "1")
    said = scene.ok("run", "--agents", "2", "--drain")
    assert said.out == ""
    assert "task 1: done → merged" in said.err
    assert [t["status"] for t in scene.ok("list", "-a", "--json").json] == ["merged", "merged"]
    assert (scene.root / "file-1").read_text() == "1\n"
    assert (scene.root / "file-2").exists()
    assert scene.git("status", "--porcelain") == "?? .crew/"
    assert len(scene.ok("ps", "--json").json) == 2


def test_drain_ends_with_6_and_says_what_is_not_merged_and_why(scene):
    scene.ok("new", "--title", "good")
    scene.ok("new", "--title", "bad")
    scene.ok("new", "--title", "later", "--after", "2")
    scene.plan("2", "fail")
    said = scene.crew("run", "--agents", "2", "--drain", "-q")
    assert said.code == 6
    assert said.out == ""
    left = said.err.splitlines()
    assert len(left) == 2
    assert left[0].startswith("not merged: 2 bad")
    assert "not merged: 3 later (todo): blocked by 2" in left[1]
    assert scene.status("1") == "merged"


def test_drain_as_json_is_one_document_that_holds_the_error_too(scene):
    scene.ok("new", "--title", "bad")
    scene.plan("1", "fail")
    said = scene.crew("run", "--drain", "--json")
    assert said.code == 6
    assert said.json["error"]["code"] == "check_failed"
    assert [task["id"] for task in said.json["not_merged"]] == ["1"]
    scene.plan("1", "go")
    stuck = next(a for a in scene.ok("ps", "--json").json if a["status"] == "stuck")
    scene.ok("retry", stuck["name"])
    said = scene.ok("run", "--drain", "--json")
    assert said.json == {
        "merged": ["1"],
        "landed": [],
        "not_merged": [],
        "awaits_merge": [],
        "waiting": [],
    }


def test_a_task_that_failed_before_does_not_spoil_the_next_drain(scene):
    scene.ok("new", "--title", "does nothing")
    scene.plan("1", "nothing")
    assert scene.crew("run", "--drain").code == 6
    assert scene.status("1") == "error"
    scene.ok("new", "--title", "good")
    scene.ok("run", "--drain")
    scene.plan("1", "go")
    scene.ok("edit", "1", "--status", "todo")
    assert scene.status("1") == "todo"
    scene.ok("run", "--drain")
    assert scene.status("1") == "merged"


def test_a_missing_agent_program_is_named(scene):
    scene.configure('[agents.ghost]\ncommand_template = "no-such-program {{.Prompt}}"\n')
    scene.ok("new", "--title", "one")
    refused = scene.refused(1, "not_installed", "run", "--drain", "--agent", "ghost")
    assert "no-such-program" in refused.message
    assert "ghost" in refused.message
    assert scene.status("1") == "todo"


def test_a_red_gate_and_a_missing_gate_program_end_with_6(scene):
    scene.configure('[complete]\ncommand = "no-such-gate"\n[review]\nmax_rounds = 2\n')
    scene.ok("new", "--title", "one")
    said = scene.crew("run", "--drain", "-q")
    assert said.code == 6, said
    assert "not merged: 1" in said.err
    assert not (scene.root / "file-1").exists()


def test_a_delivery_that_waits_is_told_and_ends_with_75(scene):
    (scene.root / "file-1").write_text("mine\n")
    scene.ok("new", "--title", "one")
    said = scene.crew("run", "--drain", "-q")
    assert said.code == 75, said
    assert "delivery to main waits" in said.err
    assert "file-1" in said.err
    assert (scene.root / "file-1").read_text() == "mine\n"
    assert "delivery to main waits" in scene.ok("ps").err
    assert "delivery to main waits" in scene.ok("list").err
    doctor = scene.crew("doctor")
    assert doctor.code == 1
    assert "file-1" in doctor.out
    (scene.root / "file-1").unlink()
    scene.ok("merge", "1")
    assert (scene.root / "file-1").read_text() == "1\n"
    scene.ok("doctor")


def test_a_second_runner_is_refused_with_pid_and_start_time(scene, running):
    first = running()
    refused = scene.refused(5, "lock_held", "run")
    assert f"pid {first.pid}" in refused.message
    assert "started 20" in refused.message
    scene.refused(5, "lock_held", "clean", "--yes")


def test_stop_lets_the_step_finish_and_stop_now_does_not(scene, running):
    scene.ok("new", "--title", "slow")
    scene.plan("1", "wait")
    first = running()
    until(lambda: scene.agent()["status"] == "working")
    scene.ok("stop", "--now")
    assert first.wait(timeout=PATIENCE_S) == 0
    assert scene.status("1") == "in_progress"
    second = running()
    until(lambda: scene.agent()["pid"] is not None)
    stopping = scene.start("stop")
    scene.let_go()
    assert second.wait(timeout=PATIENCE_S) == 0
    stopping.communicate(timeout=PATIENCE_S)
    assert stopping.returncode == 0
    assert scene.ok("stop").err.startswith("no runner is up")


def test_commands_reach_a_running_crew(scene, running):
    scene.plan("1", "wait")
    running()
    assert scene.ok("spawn", "Ann").out == "Ann\n"
    scene.ok("new", "--title", "one")
    until(lambda: any(a["task"] == "1" for a in scene.agents()))
    name = next(a["name"] for a in scene.agents() if a["task"] == "1")
    until(lambda: scene.agent(name)["status"] == "working")
    assert scene.crew("cleanup", name).code == 5
    assert scene.crew("assign", name, "1").code == 5
    scene.ok("close", "1")
    assert scene.status("1") == "closed"
    assert {a["status"] for a in scene.ok("ps", "--json").json if a["name"] == name} == {"idle"}
    until(lambda: scene.agent(name)["status"] == "idle")  # the file follows a moment later


def test_kill_gives_the_task_back_and_keeps_the_work(scene, running):
    scene.ok("new", "--title", "one")
    scene.plan("1", "wait")
    runner = running()
    until(lambda: scene.agent()["pid"] is not None)
    worktree = Path(scene.agent()["worktree"])
    (worktree / "half done").write_text("work")
    runner.send_signal(signal.SIGTERM)
    assert scene.ok("kill", "A", "--json").json["status"] == "idle"
    assert scene.status("1") == "todo"
    runner.wait(timeout=PATIENCE_S)
    assert scene.agent()["status"] == "idle"
    kept = scene.ok("checkpoints", "1", "--json").json
    assert set(kept[-1]) == {
        *("number", "commit", "parent", "label", "at"),
        *("reset_away", "nested", "left_out"),
    }
    into = Path(scene.ok("restore", "1").out.strip())
    assert (into / "half done").read_text() == "work"
    assert scene.crew("restore", "1").code == 5
    assert scene.ok("restore", "1", "1", "--into", "there", "--json").json["number"] == 1
    assert (scene.root / "there" / "half done").exists()


HELD_S = 1.0
"""How long somebody reads the task files, while a command that needs them written waits."""


@pytest.mark.parametrize(
    ("args", "task", "status"),
    [
        (["kill", "A"], "1", "todo"),
        (["stop", "1"], "1", "error"),
        (["start", "2", "--headless"], "2", "in_progress"),
    ],
)
def test_a_command_is_over_once_the_file_of_its_task_says_so(scene, running, args, task, status):
    scene.ok("new", "--title", "one")
    scene.ok("new", "--title", "two")
    for number in ("1", "2"):
        scene.plan(number, "wait")
    running()
    until(lambda: scene.agent()["status"] == "working" and scene.status("1") == "in_progress")
    with (scene.root / ".crew/tasks/default/.lock").open() as reading:
        fcntl.flock(reading, fcntl.LOCK_SH)
        command = scene.start(*args)
        until(lambda: scene.ok("show", task, "--json").json["status"] == status)
        with pytest.raises(subprocess.TimeoutExpired):
            command.wait(timeout=HELD_S)
    command.communicate(timeout=PATIENCE_S)
    assert (command.returncode, scene.status(task)) == (0, status)


def test_run_in_the_background_prints_its_pid_and_holds_the_lock(scene):
    said = scene.ok("run", "--detach")
    pid = int(said.out)
    try:
        assert scene.crew("run").code == 5
        assert scene.crew("run", "--detach").code == 5
        scene.ok("new", "--title", "one")
        until(lambda: scene.status("1") == "merged")
    finally:
        scene.ok("stop")
    until(lambda: find_process(pid) is None)
    assert "task 1" in (scene.root / ".crew/logs/crew.log").read_text()


@pytest.mark.parametrize(("plan", "status"), [("go", "merged"), ("fail", "in_progress")])
def test_a_runner_that_came_and_went_before_anybody_looked_was_there(
    scene, monkeypatch, plan, status
):
    scene.ok("new", "--title", "one")
    scene.plan("1", plan)
    monkeypatch.setattr("crew.runner.background.detached.find_runner", lambda _lock: None)
    workplace = find_workplace(scene.root)
    try:
        assert start_runner(workplace, ["run", "--drain"]) > 0
        with pytest.raises(CrewError, match="did not start: crew: no agent is called 'nobody'"):
            start_runner(workplace, ["run", "--agent", "nobody"])
    finally:
        workplace.db.close()
    assert scene.status("1") == status


def test_ctrl_c_ends_the_runner_with_130(scene, running):
    runner = running()
    runner.send_signal(signal.SIGINT)
    assert runner.wait(timeout=PATIENCE_S) == 130


IMPATIENT = """
import sys
from crew.front.cli.main import main
from crew.store.database import open_database
open_database.__kwdefaults__["wait_s"] = 0.2
main(sys.argv[1:])
"""
"""A crew that waits for a locked database less long than ten seconds."""


def test_a_locked_database_means_try_later(scene):
    held = sqlite3.connect(scene.root / ".crew/crew.db", isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    argv = ["-c", IMPATIENT, "--json", "spawn"]
    done = warm_python().run(argv, cwd=scene.root, env=os.environ)
    held.execute("ROLLBACK")
    held.close()
    refusal = json.loads(done.stdout)["error"]
    assert (done.returncode, refusal["code"]) == (75, "try_later")
    assert refusal["hint"]
    scene.ok("spawn")


def test_clean_removes_state_and_worktrees_and_keeps_tasks_and_work(scene, running):
    scene.ok("new", "--title", "one")
    scene.ok("new", "--title", "two")
    scene.plan("2", "wait")
    runner = running("--agents", "2")
    until(lambda: scene.status("1") == "merged")
    until(lambda: any(a["pid"] and a["task"] == "2" for a in scene.agents()))
    scene.ok("stop", "--now")
    runner.wait(timeout=PATIENCE_S)
    worktree = Path(scene.ok("show", "2", "--json").json["worktree"])
    (worktree / "precious").write_text("work")
    assert scene.crew("clean").code == 2
    assert worktree.exists()
    said = scene.ok("clean", "--yes", "--json").json
    assert str(worktree) in said["worktrees"]
    assert not worktree.exists()
    assert scene.ok("ps", "--json").json == []
    assert scene.ok("events", "--json").json == []
    assert [t["status"] for t in scene.ok("list", "-a", "--json").json] == ["merged", "todo"]
    assert scene.ok("checkpoints", "2", "--json").json
    scene.let_go()
    scene.ok("clean", "--yes")
    scene.ok("run", "--drain")
    assert scene.status("2") == "merged"


def test_clean_names_the_branches_it_keeps(scene):
    for made in ("crew-7", "crew-8"):
        scene.git("update-ref", made_ref(made), "main")
    scene.git("branch", "crew-7")
    scene.git("branch", "crew-9")  # a person's own, which crew did not make
    scene.git("checkout", "-q", "-b", "crew-8")
    scene.git("commit", "-q", "--allow-empty", "-m", "only here")
    scene.git("checkout", "-q", "main")
    said = scene.ok("clean", "--yes")
    assert "keeps the branch crew-8" in said.err
    assert scene.git("branch", "--list", "crew-*").split() == ["crew-8", "crew-9"]


def test_a_conflict_that_a_person_must_solve_ends_the_drain_with_6(scene):
    scene.configure('[merge]\nconflict = "ask"\n')
    scene.ok("new", "--title", "one")
    scene.ok("new", "--title", "two")
    scene.plan("1", "clash")
    scene.plan("2", "clash")
    said = scene.crew("run", "--agents", "2", "--drain", "-q")
    statuses = sorted(t["status"] for t in scene.ok("list", "-a", "--json").json)
    asked = scene.ok("inbox", "--json").json
    assert statuses == (["done", "merged"] if asked else ["merged", "merged"])
    assert said.code == (6 if asked else 0)


def test_crew_works_from_inside_an_agents_worktree(scene, running):
    scene.ok("new", "--title", "one")
    scene.plan("1", "wait")
    running()
    until(lambda: scene.agent().get("worktree") is not None)
    worktree = Path(scene.agent()["worktree"])
    assert scene.crew("list", "--json", cwd=worktree).json[0]["id"] == "1"
    assert scene.crew("ps", "--json", cwd=worktree).json[0]["name"] == "A"
    assert scene.crew("-C", str(worktree), "show", "1", cwd=Path("/")).code == 0


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems refuse such a name")
def test_a_repository_whose_path_is_not_utf8_is_worked_on(scene):
    root = scene.root.rename(scene.root.parent / os.fsdecode(b"caf\xe9"))
    odd = replace(scene, root=root)
    odd.ok("new", "--title", "one")
    odd.ok("run", "--drain")
    assert odd.status("1") == "merged"
    run = last_run(odd).id
    told = json.loads((root / f".crew/runs/{run}/manifest.json").read_text())
    assert told["repo_path"] == str(root)
    assert odd.agent()["kind"] == "sh"
    odd.plan("2", "fail")
    odd.ok("new", "--title", "two")
    assert odd.crew("run", "--drain").code == 6
    assert odd.agent()["worktree"] == f"{root}-worktrees/2"
    odd.ok("doctor")
    odd.ok("clean", "--yes", "-q")


def test_ps_shows_the_kind_of_the_run_while_there_is_one(scene, running):
    scene.configure(f'[agents.other]\ncommand_template = "sh {scene.folder}/agent.sh"\n')
    scene.configure(f'env = {{ SCENE = "{scene.folder}" }}\n')
    scene.plan("1", "wait")
    scene.ok("new", "--title", "one", "--agent", "other")
    running()
    until(lambda: scene.agent()["pid"] is not None)
    (shown,) = scene.ok("ps", "--json").json
    assert (shown["kind"], scene.agent()["kind"]) == ("other", "other")
    assert " other " in scene.ok("ps").out
    scene.let_go()
    scene.ok("poll", "1", "--status", "merged")
    assert [one["kind"] for one in scene.ok("ps", "--json").json] == ["sh"]


def test_an_error_before_the_agent_is_stuck_is_shown_and_can_be_retried(scene, running):
    config = scene.root / ".crew" / "config.toml"
    config.write_text(config.read_text().replace("backoff_s = 0.", "backoff_s = 600."))
    scene.git("branch", "crew-1")
    scene.ok("new", "--title", "one")
    process = running()
    until(lambda: scene.agent().get("retry_at"))
    scene.ok("stop", "--now")
    process.wait()
    note = "no runner: `crew run` continues it; last error: there is a branch crew-1 that crew did"
    assert note in scene.ok("ps").out
    assert note in scene.ok("dashboard", "--once").out
    scene.git("branch", "-m", "crew-1", "my-crew-1")
    scene.ok("retry", "A")
    scene.ok("run", "--drain", "-q")
    assert scene.status("1") == "merged"


def test_a_stuck_agent_tries_at_no_time(scene):
    scene.plan("1", "fail")
    scene.ok("new", "--title", "one")
    assert scene.crew("run", "--drain", "-q").code == 6
    (shown,) = scene.ok("ps", "--json").json
    assert (shown["status"], shown["retry_at"]) == ("stuck", None)


def test_a_title_that_is_longer_than_a_variable_may_be_harms_no_step(scene):
    title = "ä" * 140_000
    scene.ok("new", "--from", "-", stdin=f"---\ntitle: {title}\n---\n")
    scene.ok("run", "--drain", "-q")
    assert scene.status("1") == "merged"
    assert scene.ok("show", "1", "--json").json["title"] == title


STOPPED_CALLS = (["spawn"], ["kill", "A"], ["stop"], ["stop", "--now"], ["dismiss", "A"])


@pytest.fixture
def frozen_runner(scene, running):
    """A runner at work on task 1, as Ctrl-Z leaves it."""
    scene.plan("1", "wait")
    scene.ok("new", "--title", "first")
    runner = running("--drain")
    until((scene.folder / "waits-1").exists)
    os.kill(runner.pid, signal.SIGSTOP)
    yield runner
    with contextlib.suppress(ProcessLookupError):  # it went on and has ended
        os.kill(runner.pid, signal.SIGCONT)


@pytest.mark.parametrize("command", STOPPED_CALLS, ids=" ".join)
def test_a_call_says_at_once_that_the_runner_is_stopped(scene, frozen_runner, command):
    refusal = scene.refused(75, "runner_stopped", *command)
    assert str(frozen_runner.pid) in refusal.message
    assert f"kill -CONT {frozen_runner.pid}" in refusal.hint


def test_ps_says_that_the_runner_is_stopped(scene, frozen_runner):
    assert f"kill -CONT {frozen_runner.pid}" in scene.ok("ps").err


def test_what_was_refused_is_not_done_when_the_runner_goes_on(scene, frozen_runner):
    scene.refused(75, "runner_stopped", "spawn", "Eve")
    os.kill(frozen_runner.pid, signal.SIGCONT)
    scene.ok("spawn", "Bob")
    assert {one["name"] for one in scene.ok("ps", "--json").json} == {"A", "Bob"}
    scene.let_go()
    assert frozen_runner.wait() == 0
    assert scene.status("1") == "merged"


def test_a_runner_that_is_stopped_in_the_middle_of_a_request_is_found(scene, frozen_runner):
    """The first look found it running: it is stopped while the call waits for the reply."""
    os.kill(frozen_runner.pid, signal.SIGCONT)
    with StopsWhenAsked(scene.root / ".crew", frozen_runner.pid):
        scene.refused(75, "runner_stopped", "spawn")


def test_a_runner_that_is_only_busy_is_waited_for(scene, running):
    """It is stopped and continued all the time, so no look finds it stopped for long."""
    runner = running()
    slowed = threading.Event()

    def slow_down():
        while not slowed.wait(0.05):
            os.kill(runner.pid, signal.SIGSTOP)
            slowed.wait(0.2)
            os.kill(runner.pid, signal.SIGCONT)

    thread = threading.Thread(target=slow_down)
    thread.start()
    try:
        assert scene.ok("spawn", "Eve").out == "Eve\n"
        assert scene.ok("spawn", "Bob").out == "Bob\n"
    finally:
        slowed.set()
        thread.join()
        os.kill(runner.pid, signal.SIGCONT)


class StopsWhenAsked:
    """Stops a runner as soon as a request is stored: its own wake-up is kept from it."""

    def __init__(self, folder, pid):
        self.folder, self.pid, self.over = folder, pid, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def __enter__(self):
        (self.folder / "wake").rename(self.folder / "wake-aside")
        self.thread.start()

    def __exit__(self, *_error):
        self.over.set()
        self.thread.join()
        (self.folder / "wake-aside").rename(self.folder / "wake")

    def watch(self):
        with contextlib.closing(sqlite3.connect(self.folder / "crew.db")) as db:
            while not self.over.wait(0.005):
                asked = "SELECT count(*) FROM requests WHERE reply IS NULL"
                if db.execute(asked).fetchone()[0]:
                    os.kill(self.pid, signal.SIGSTOP)
                    return
