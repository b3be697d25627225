"""Hints and notes that are true: what they advise works, and what they say is so."""

import json
import signal

import pytest

from front.conftest import PATIENCE_S, until


@pytest.fixture
def merged(scene):
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain", "-q")
    return scene


def test_a_run_that_no_agent_has_any_more_shows_its_kind_alone(merged):
    (said,) = (words for words in merged.ok("show", "1").out.splitlines() if words[:3] == "run")
    assert said == "run 1.1: complete, sh, round 1 of 20, 1 step, cost unknown"


def test_what_is_advised_about_a_merged_task_can_be_done(merged):
    for code, *args in (
        ("no_terminal", "attach", "1"),
        ("no_worktree", "exec", "1", "--", "true"),
        ("no_task_branch", "review", "1"),
        ("task_over", "start", "1"),
    ):
        hint = merged.refused(5, code, *args).hint
        assert "crew start" not in hint, args
        assert "`crew show 1`" in hint, args
        assert "`crew new`" in hint, args
    merged.ok("show", "1")
    assert "+++ b/file-1" in merged.ok("diff", "1").out


def test_a_drain_that_delivers_nothing_does_not_say_so(scene):
    scene.ok("new", "--title", "one")
    scene.plan("1", "nothing")
    said = scene.crew("run", "--drain")
    assert said.code == 6
    assert "delivered" not in said.err


def test_what_is_advised_about_a_task_that_never_began_can_be_done(scene):
    scene.ok("new", "--title", "one")
    hint = scene.refused(3, "not_found", "restore", "1").hint
    assert "`crew diff" not in hint
    assert "`crew show 1`" in hint
    assert "crew checkpoints" not in scene.ok("close", "1").err


def test_a_close_with_nothing_kept_does_not_name_checkpoints(scene):
    scene.plan("1", "nothing")
    scene.ok("new", "--title", "one")
    scene.crew("run", "--drain")
    kept = scene.ok("checkpoints", "1", "--json").json
    assert ("crew checkpoints 1" in scene.ok("close", "1").err) == bool(kept)


@pytest.fixture
def abandoned(scene):
    """The runner was killed in the middle of a step."""
    scene.ok("new", "--title", "one")
    scene.plan("1", "wait")
    runner = scene.start("run")
    until((scene.folder / "waits-1").exists)
    yield scene, runner
    if runner.poll() is None:
        runner.kill()
    runner.communicate(timeout=PATIENCE_S)


def test_without_a_runner_nothing_is_shown_as_under_way(abandoned):
    scene, runner = abandoned
    runner.send_signal(signal.SIGKILL)
    runner.wait(timeout=PATIENCE_S)
    waits = "no runner: `crew run` continues it"
    assert waits in scene.ok("ps").out
    assert waits in scene.ok("dashboard", "--once").out
    assert waits in scene.ok("show", "1").out
    assert scene.ok("ps", "--json").json[0]["pid"] is None
    assert scene.ok("dashboard", "--json").json["agents"][0]["pid"] is None


def test_a_worktree_can_be_cleaned_up_once_no_step_runs_in_it(abandoned):
    scene, _ = abandoned
    assert "crew kill A" in scene.refused(5, "worktree_in_use", "cleanup", "A").hint
    scene.ok("stop", "--now")
    until(lambda: scene.runner_pid() is None)
    assert json.loads((scene.root / ".crew/state.json").read_text())["agents"][0]["pid"] is None
    scene.ok("cleanup", "A")
    assert scene.ok("show", "1", "--json").json["worktree"] is None
    scene.let_go()
    scene.ok("run", "--drain", "-q")
    assert scene.status("1") == "merged"
