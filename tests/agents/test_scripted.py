"""The scripted agent does what its script says, once, and goes on where it was."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agents.contract import AdapterContract, order, run_step
from crew.agents.adapter import AgentSpec, adapter_for
from crew.agents.scripted import script_player
from crew.domain.rows.step import ErrorKind, Usage
from crew.system.processes.ownership import owned_processes

__all__ = ["order"]


@pytest.fixture
def script(tmp_path):
    """Writes a script, and gives the adapter that follows it."""

    def make(content):
        path = tmp_path / "script.json"
        path.write_text(json.dumps(content))
        return adapter_for(AgentSpec(name="scripted", adapter="scripted", script=str(path)))

    return make


@pytest.fixture
def stage(tmp_path):
    def make(*acts):
        names = {"say": "say", "shell": "run", "exit": "exit"}
        steps = [[{names[kind]: value} for kind, value in acts]]
        path = tmp_path / "script.json"
        path.write_text(json.dumps({"default": {"steps": steps}}))
        return AgentSpec(name="scripted", adapter="scripted", script=str(path))

    return make


class TestScriptedAdapter(AdapterContract):
    pass


@pytest.fixture
def git(order):
    """Git in the worktree, which becomes a repository with one commit."""

    def git(*arguments, may_fail=False):
        ended = subprocess.run(
            ["git", *arguments], cwd=order.worktree, capture_output=True, text=True, check=False
        )
        assert may_fail or ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    git("init", "--quiet", "--initial-branch", "main")
    git("config", "user.name", "Test")
    git("config", "user.email", "test@localhost")
    (order.worktree / "list").write_text("first\n")
    git("add", "list")
    git("commit", "--quiet", "--message", "start")
    return git


def steps(*lists):
    return {"default": {"steps": list(lists)}}


def test_steps_are_played_in_order_and_then_it_is_done(script, order):
    adapter = script(steps([{"say": "one"}], [{"say": "two"}]))
    texts = [run_step(adapter, order).text for _ in range(4)]
    assert texts == ["one\n", "two\n", "DONE\n", "DONE\n"]


def test_each_task_has_its_part_by_id_or_by_title(script, order):
    adapter = script(
        {
            "tasks": {
                "7": {"steps": [[{"say": "seven"}]]},
                "Fix it": {"steps": [[{"say": "fix"}]]},
            },
            "default": {"steps": [[{"say": "other"}]]},
        }
    )

    def said(task, title):
        env = {**order.env, "CREW_TASK_ID": task, "CREW_TASK_TITLE": title}
        return run_step(adapter, replace(order, env=env)).text

    assert [said("7", "x"), said("8", "Fix it"), said("9", "y")] == ["seven\n", "fix\n", "other\n"]


def test_a_red_gate_and_a_conflict_have_steps_of_their_own(script, order):
    adapter = script(
        {
            "default": {
                "steps": [[{"say": "work"}]],
                "on_red_gate": [[{"say": "mend"}]],
                "on_conflict": [[{"say": "settle"}]],
            }
        }
    )

    def said(reason):
        env = {**order.env, "CREW_REASON": reason}
        return run_step(adapter, replace(order, env=env)).text

    reasons = ("", "red_gate", "conflict", "red_gate", "review")
    assert [said(reason) for reason in reasons] == [
        "work\n",
        "mend\n",
        "settle\n",
        "DONE\n",
        "DONE\n",
    ]


def test_a_reviewer_has_verdicts_of_its_own_and_passes_after_them(script, order):
    adapter = script(
        {
            "default": {
                "steps": [[{"write": {"path": "x", "text": "x"}}]],
                "as_reviewer": [[{"say": "FAIL"}]],
            }
        }
    )
    reviewer = replace(order, env={**order.env, "CREW_ROLE": "reviewer"})
    assert [run_step(adapter, reviewer).text for _ in range(2)] == ["FAIL\n", "PASS\n"]
    assert list(order.worktree.iterdir()) == []


def test_toml_scripts_are_read_too(order, tmp_path):
    path = tmp_path / "script.toml"
    path.write_text('[default]\nsteps = [[{ say = "hello" }]]\n')
    spec = AgentSpec(name="s", adapter="scripted", env={"CREW_SCRIPT": str(path)})
    assert run_step(adapter_for(spec), order).text == "hello\n"


def test_it_writes_appends_and_commits(script, order, git):
    actions = [
        {"write": {"path": "deep/new.py", "text": "print()\n"}},
        {"append": {"path": "list", "text": "second\n"}},
        {"commit": "Add it"},
        {"commit": "Nothing more"},
        {"done": True},
    ]
    assert run_step(script(steps(actions)), order).done
    assert git("log", "--format=%s") == "Add it\nstart"
    assert git("show", "HEAD:list") == "first\nsecond"
    assert git("status", "--porcelain") == ""


def test_a_step_that_was_killed_is_played_again_to_the_same_end(script, order, git):
    actions = [
        {"append": {"path": "list", "text": "second\n"}},
        {"commit": "Add it"},
        {"run": "test -e ../again || { touch ../waits; sleep 600; }"},
        {"say": "through"},
    ]
    adapter = script(steps(actions))
    waits = order.worktree.parent / "waits"
    killed = run_step(adapter, replace(order, timeout_s=6000.0), late_when=waits.exists)
    assert killed.error.kind is ErrorKind.STALLED
    (order.worktree.parent / "again").touch()
    (order.worktree / ".git" / "index.lock").touch()  # as a killed git leaves it
    again = run_step(adapter, order)
    assert (again.error, again.text) == (None, "through\n")
    assert git("show", "HEAD:list") == "first\nsecond"
    assert git("rev-list", "--count", "HEAD") == "2"


def test_a_step_that_hangs_is_stalled_once(script, order):
    adapter = script(steps([{"say": "x"}, {"hang": True}], [{"say": "better"}]))
    hangs = order.log.parent / "scripted" / "script-7.json"
    stalled = run_step(adapter, replace(order, timeout_s=6000.0), late_when=hangs.exists)
    assert stalled.error.kind is ErrorKind.STALLED
    assert run_step(adapter, order).text == "better\n"


@pytest.mark.parametrize("kind", [kind.value for kind in ErrorKind])
def test_it_can_fail_in_every_way_there_is(script, order, kind):
    adapter = script(steps([{"fail": {"kind": kind, "message": "no", "reset_at": 12.5}}]))
    error = run_step(adapter, order).error
    assert (error.kind, error.message, error.reset_at) == (kind, "no", 12.5)
    assert run_step(adapter, order).error is None


def test_what_it_uses_is_added_up(script, order):
    use = {"use": {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.25}}
    outcome = run_step(script(steps([use, use])), order)
    assert outcome.usage == Usage(input_tokens=20, output_tokens=10, cost_usd=0.5)


def test_an_exit_without_a_last_word_is_a_crash(script, order):
    assert run_step(script(steps([{"exit": 0}])), order).error.kind is ErrorKind.CRASHED


def test_a_flood_is_in_the_log_and_not_in_memory(script, order):
    outcome = run_step(script(steps([{"flood": 2_000_000}, {"done": True}])), order)
    assert outcome.done
    assert outcome.text == "DONE\n"
    assert order.log.stat().st_size > 2_000_000


def test_a_daemon_it_leaves_is_ended(script, order, marker):
    assert run_step(script(steps([{"daemon": 600}])), order).error is None
    assert owned_processes(marker) == ()


@pytest.mark.parametrize("actions", [[{"jump": 1}], [{"write": {"path": "x"}}], ["say"], 5])
def test_a_wrong_script_is_told(script, order, actions):
    error = run_step(script(steps(actions)), order).error
    assert error.kind is ErrorKind.CRASHED
    assert error.message


def test_an_unknown_action_is_told_with_the_known_ones(script, order):
    assert "write" in run_step(script(steps([{"jump": 1}])), order).error.message


def test_a_script_that_is_missing_is_told(order):
    spec = AgentSpec(name="s", adapter="scripted", script="/nowhere.json")
    assert "/nowhere.json" in run_step(adapter_for(spec), order).error.message


def other_side(git, order):
    """A commit that conflicts with the branch in every way; its id."""
    (order.worktree / "gone").write_text("kept by the other side\n")
    git("add", "gone")
    git("commit", "--quiet", "--message", "a file")
    git("checkout", "--quiet", "-b", "other")
    (order.worktree / "list").write_text("first\ntheirs\n")
    (order.worktree / "both").write_text("theirs too\n")
    (order.worktree / "gone").write_text("changed by the other side\n")
    git("add", "--all")
    git("commit", "--quiet", "--message", "their side")
    commit = git("rev-parse", "HEAD")
    git("checkout", "--quiet", "main")
    (order.worktree / "list").write_text("first\nours\n")
    (order.worktree / "both").write_text("ours too\n")
    (order.worktree / "gone").unlink()
    git("add", "--all")
    git("commit", "--quiet", "--message", "our side")
    return commit


@pytest.mark.parametrize("begun", ["", "at its conflicts", "before git noted it"])
def test_a_conflict_is_resolved_by_keeping_both_sides(script, order, git, begun):
    commit = other_side(git, order)
    if begun:  # a try before was killed in the middle of the merge
        git("merge", commit, may_fail=True)
    if begun == "before git noted it":
        git("reset", "--quiet", "--hard")
        git("checkout", "--quiet", commit, "--", ".")
    env = {**order.env, "CREW_MERGE_COMMIT": commit}
    step = script(steps([{"resolve": "both"}, {"done": True}], [{"resolve": "both"}]))
    assert run_step(step, replace(order, env=env)).done
    assert git("show", "HEAD:list") == "first\nours\ntheirs"
    assert git("show", "HEAD:both") == "ours too\ntheirs too"
    assert git("show", "HEAD:gone") == "changed by the other side"
    assert git("rev-list", "--parents", "-1", "HEAD").split()[2] == commit
    head = git("rev-parse", "HEAD")
    assert run_step(step, replace(order, env=env)).error is None
    assert git("rev-parse", "HEAD") == head


def test_the_player_is_quick_to_start():
    """Counted in modules, not in time: what it loads is what it costs."""
    load = f"import sys; sys.path.insert(0, {str(Path(script_player.__file__).parent)!r}); "
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{load} import script_player; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "json" in loaded
    assert not {"subprocess", "typing", "pathlib", "asyncio", "tomllib"} & set(loaded)
