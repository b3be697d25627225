"""Costs are complete or called unknown, whatever is killed meanwhile."""

import json
import os
import signal

import pytest

from front.conftest import last_run, until

USES = {"use": {"input_tokens": 30, "output_tokens": 2, "cost_usd": 0.5}}
WORK = [{"write": {"path": "new", "text": "x"}}, {"commit": "new"}, {"done": True}]
HANGS = [{"say": "I hang"}, {"hang": True}]
PLAYS = {
    "step": {"steps": [[USES, *HANGS], [USES, *WORK]]},
    "review": {"steps": [[USES, *WORK]], "as_reviewer": [HANGS, [{"say": "PASS"}]]},
}


@pytest.fixture
def busy(scene, running):
    """Starts a crew whose scripted agents hang in a step or in a review; returns its runner."""

    def busy(what):
        _configure(scene, what, '[review]\nmode = "single"\nagent = "scripted"\n')
        scene.ok("new", "--title", "one")
        runner = running("--agent", "scripted")
        until(lambda: _is_hanging(scene, what))
        return runner

    return busy


def _configure(scene, what, text):
    script = scene.folder / "script.json"
    script.write_text(json.dumps({"default": PLAYS[what]}))
    scene.configure(f"[agents.scripted]\nscript = {json.dumps(str(script))}\n{text}")


def _is_hanging(scene, what):
    log = scene.root / ".crew" / "logs" / f"{'task' if what == 'step' else 'review'}-1.log"
    return log.exists() and "I hang" in log.read_text()


@pytest.mark.parametrize("what", PLAYS)
def test_the_cost_of_what_died_with_its_runner_is_unknown(scene, running, busy, what):
    runner = busy(what)
    os.kill(runner.pid, signal.SIGKILL)
    runner.communicate()
    running("--agent", "scripted")
    until(lambda: scene.status("1") == "merged")
    assert last_run(scene).cost_usd is None
    assert scene.ok("ps", "--json").json[0]["total_cost_usd"] is None


@pytest.mark.parametrize("what", PLAYS)
def test_the_cost_of_what_a_person_killed_is_unknown(scene, busy, what):
    busy(what)
    scene.ok("kill", "A")
    until(lambda: scene.status("1") == "todo")
    assert last_run(scene).cost_usd is None
    assert scene.ok("ps", "--json").json[0]["total_cost_usd"] is None


def test_the_cost_of_a_review_that_a_person_stopped_is_unknown(scene):
    _configure(scene, "review", '[complete]\ncommand = "false"\n[review]\nmax_rounds = 1\n')
    scene.ok("new", "--title", "one")
    assert scene.crew("run", "--agent", "scripted", "--drain").code == 6
    assert last_run(scene).cost_usd == 0.5
    review = scene.start("review", "1", "--agent", "scripted")
    until(lambda: _is_hanging(scene, "review"))
    review.send_signal(signal.SIGINT)
    review.communicate()
    assert review.returncode == 130
    assert last_run(scene).cost_usd is None
    assert "total: 32 tokens, unknown" in scene.ok("dashboard", "--once").out


@pytest.fixture
def boss(scene):
    """Starts `crew manager` with a scripted agent that takes these steps."""

    def boss(steps):
        script = scene.folder / "boss.json"
        script.write_text(json.dumps({"default": {"steps": steps}}))
        scene.configure(
            f'[agents.boss]\nrole = "manager"\nadapter = "scripted"\nscript = "{script}"\n'
        )
        return ("manager", "boss", "--auto", "-p", "write a poem", "--max-steps", "1")

    return boss


def test_the_cost_of_a_manager_is_counted(scene, boss):
    scene.ok(*boss([[USES, {"done": True}]]))
    (by_task,) = scene.ok("cost", "--json").json
    assert by_task == {
        "task": "manager",
        "runs": 0,
        "steps": 1,
        "input_tokens": 30,
        "output_tokens": 2,
        "cost_usd": 0.5,
        "known_cost_usd": 0.5,
    }
    assert "manager" in scene.ok("cost", "--by", "agent").out
    assert "boss (its default)" in scene.ok("cost", "--by", "model").out
    assert "total: 32 tokens, $0.5" in scene.ok("dashboard", "--once").out


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_cost_of_a_manager_that_was_killed_is_unknown(scene, boss, number):
    manager = scene.start(*boss([HANGS]))
    log = scene.root / ".crew" / "logs" / "manager.log"
    until(lambda: log.exists() and "I hang" in log.read_text())
    manager.send_signal(number)
    manager.communicate()
    (by_task,) = scene.ok("cost", "--json").json
    assert (by_task["steps"], by_task["cost_usd"]) == (1, None)
    assert "unknown" in scene.ok("cost").out
