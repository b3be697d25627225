"""What a new user meets first: no agent configured, none installed, no gate, a Ctrl-C."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from crew.config.layers.layers import merged_settings
from crew.workplace import find_workplace
from front.conftest import PATIENCE_S, until

GHOST = '[agents.ghost]\ncommand_template = "no-such-program {{.Prompt}}"\n'


def kinds(scene):
    return {agent["name"]: agent["kind"] for agent in scene.ok("ps", "--json").json}


@pytest.fixture
def new_user(bare_scene, tmp_path):
    """As the README begins: a crew, a task, and no agent's program on the path."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("git", "sh"):
        (tools / name).symlink_to(str(shutil.which(name)))
    bare_scene.ok("init")
    bare_scene.ok("new", "--title", "one")
    bare_scene.path = str(tools)
    return bare_scene


# an agent that is not configured yet


def test_run_before_an_agent_is_configured_makes_nothing_and_says_what_to_do(new_user):
    wanted = ("run", "--agents", "3", "--drain")
    refused = new_user.refused(1, "not_installed", *wanted, PATH=new_user.path)
    assert "claude" in refused.message
    assert "`crew config set agents.mine.command_template 'PROGRAM {{.Prompt}}'`" in refused.hint
    assert "`crew config set agents.worker_default mine`" in refused.hint
    assert new_user.status("1") == "todo"
    assert new_user.ok("ps", "--json").json == []
    again = new_user.ok("init", PATH=new_user.path)
    assert refused.hint in again.err


def test_the_hint_works_when_typed(new_user):
    agent = new_user.folder / "agent.sh"
    agent.write_text("echo 1 > one; git add -A; git commit -qm one; echo DONE\n")
    new_user.crew("run", PATH=new_user.path)
    new_user.ok("config", "set", "agents.mine.command_template", f"sh {agent} {{{{.Prompt}}}}")
    new_user.ok("config", "set", "agents.worker_default", "mine")
    new_user.ok("run", "--agents", "3", "--drain", PATH=new_user.path)
    assert new_user.status("1") == "merged"
    assert set(kinds(new_user).values()) == {"mine"}


def test_a_runner_in_the_background_says_why_it_did_not_start(new_user):
    refused = new_user.refused(1, "not_installed", "run", "--detach", PATH=new_user.path)
    assert "claude" in refused.message


# idle agents follow the default


def test_idle_agents_follow_the_default_and_chosen_ones_do_not(scene):
    scene.configure(GHOST)
    scene.ok("spawn", "2")
    scene.ok("spawn", "Ann", "--agent", "sh")
    scene.ok("agents", "set", "B", "sh")
    scene.ok("config", "set", "agents.worker_default", "ghost")
    assert kinds(scene) == {"A": "ghost", "B": "sh", "Ann": "sh"}
    scene.ok("new", "--title", "one")
    scene.ok("new", "--title", "two")
    said = scene.ok("run", "--drain")
    assert "left out: no-such-program is not installed, and the agent ghost needs it" in said.err
    assert scene.status("1") == scene.status("2") == "merged"


def test_the_agent_of_a_run_holds_for_that_run(scene):
    scene.configure(GHOST)
    scene.ok("config", "set", "agents.worker_default", "ghost")
    scene.ok("spawn")
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain", "--agent", "sh")
    assert scene.status("1") == "merged"
    assert kinds(scene) == {"A": "ghost"}


def test_a_change_of_the_config_reaches_a_running_crew(scene, running):
    scene.configure(GHOST)
    scene.ok("config", "set", "agents.worker_default", "ghost")
    scene.ok("spawn", "Ann", "--agent", "sh")
    scene.ok("spawn", "A")
    scene.plan("1", "wait")
    scene.ok("new", "--title", "one")
    process = running()
    until(lambda: scene.agent("Ann")["status"] == "working")
    scene.ok("new", "--title", "two")
    assert scene.agent("A")["status"] == "idle"
    scene.ok("config", "set", "agents.worker_default", "sh")
    until(lambda: scene.status("2") == "merged")
    scene.let_go()
    process.terminate()


def test_an_agent_that_works_keeps_its_configuration_until_its_run_ends(scene):
    """The file that configures it may go away with another branch."""
    workplace, fresh = find_workplace(scene.root), merged_settings(()).agents
    workplace.renew_agents(fresh, keep={"sh"})
    assert "sh" in workplace.settings.agents.by_name
    assert workplace.settings.agents.worker_default == "claude"
    workplace.renew_agents(fresh, keep=())
    assert "sh" not in workplace.settings.agents.by_name


# agents set, dismiss


@pytest.mark.parametrize("runs", [False, True])
def test_a_dismissed_agent_is_gone_and_its_name_is_free(scene, running, runs):
    if runs:
        scene.plan("1", "wait")
        scene.ok("new", "--title", "one")
        running()
        until(lambda: scene.agent("A")["status"] == "working")
        assert "`crew kill A`" in scene.refused(5, "agent_busy", "dismiss", "A").hint
    scene.ok("spawn", "Zoe")
    assert scene.ok("dismiss", "Zoe").err == "agent Zoe is dismissed\n"
    assert "Zoe" not in kinds(scene)
    until(lambda: "Zoe" not in {agent["name"] for agent in scene.agents()})
    assert scene.crew("dismiss", "Zoe").code == 3
    assert scene.ok("spawn", "Zoe").out == "Zoe\n"
    last = [
        json.loads(line) for line in scene.ok("events", "--subject", "agent:Zoe", "--json").lines
    ]
    assert [fact["trigger"] for fact in last[-1]][-3:] == ["spawned", "dismissed", "spawned"]


def test_a_kind_that_is_not_configured_any_more_says_what_to_do(scene):
    scene.configure(GHOST)
    scene.ok("spawn", "A", "--agent", "ghost")
    scene.ok("new", "--title", "one")
    config = scene.root / ".crew/config.toml"
    config.write_text(config.read_text().replace(GHOST, ""))
    for said in (scene.ok("ps"), scene.crew("assign", "A", "1"), scene.crew("run", "--drain")):
        assert "no agent is configured as 'ghost'" in said.out + said.err
        assert "add [agents.ghost] to .crew/config.toml" in said.out + said.err
        assert "`crew agents set A " in said.out + said.err
    scene.ok("agents", "set", "A", "sh")
    scene.ok("run", "--drain")
    assert scene.status("1") == "merged"


# a program that is not there


def test_start_and_loop_refuse_a_missing_program_before_anything_is_made(scene):
    scene.configure(GHOST)
    scene.ok("new", "--title", "one")
    for args in (["start", "1", "ghost"], ["loop", "do it", "--agent", "ghost"]):
        assert "no-such-program" in scene.refused(1, "not_installed", *args).message
    assert [task["id"] for task in scene.ok("list", "-a", "--json").json] == ["1"]
    assert scene.status("1") == "todo"


def test_a_missing_reviewer_is_found_before_money_is_spent(scene):
    scene.configure(GHOST + '[review]\nmode = "single"\nagent = "ghost"\n')
    scene.ok("new", "--title", "one")
    refused = scene.refused(1, "not_installed", "run", "--drain")
    assert "`crew config set review.mode none`" in refused.hint
    assert scene.status("1") == "todo"


def test_a_review_by_a_missing_reviewer_names_the_way_out(scene):
    scene.configure(GHOST + "[worktree]\nkeep = true\n[complete]\nmerge = false\n")
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain")
    refused = scene.refused(1, "not_installed", "review", "1", "--agent", "ghost")
    assert "`crew review 1 --agent NAME`" in refused.hint
    assert scene.ok("show", "1", "--json").json["review_count"] == 0


def test_a_program_that_vanishes_pauses_its_kind_and_a_retry_continues_the_task(scene):
    program = scene.folder / "mine"
    program.write_text('#!/bin/sh\nrm "$0"\necho once\n')
    program.chmod(0o755)
    scene.configure(f'[agents.mine]\ncommand_template = "{program}"\n')
    scene.ok("new", "--title", "one")
    said = scene.crew("run", "--drain", "--agent", "mine")
    assert said.code == 6
    (entry,) = scene.ok("inbox", "--json").json
    assert (entry["id"], entry["cause"]) == ("mine", "not_installed")
    for shown in (scene.ok("ps"), scene.ok("list"), scene.ok("dashboard", "--once")):
        assert "agent kind mine is paused: " in shown.out + shown.err
    assert "crew retry mine" in scene.ok("show", "1").out
    assert scene.ok("list", "--json").json[0]["paused"]["kind"] == "mine"
    program.write_text("#!/bin/sh\necho a > a && git add a && git commit -qm a && echo DONE\n")
    program.chmod(0o755)
    scene.ok("retry", "mine")
    assert scene.ok("inbox", "--json").json == []
    scene.refused(5, "not_paused", "retry", "mine")
    assert scene.crew("run", "--drain").code == 0


def test_a_program_gone_while_no_agent_works_pauses_its_kind_until_it_is_back(scene, running):
    program = scene.folder / "mine"
    program.write_text("#!/bin/sh\necho a > a && git add a && git commit -qm a && echo DONE\n")
    program.chmod(0o755)
    scene.configure(f'[agents.mine]\ncommand_template = "{program}"\n')
    running("--agent", "mine", "--agents", "1")
    program.rename(scene.folder / "moved")
    scene.ok("new", "--title", "one")
    until(lambda: scene.ok("inbox", "--json").json != [])
    assert f"{program} is not installed" in scene.ok("ps").err + scene.ok("ps").out
    assert scene.status("1") == "todo"
    (scene.folder / "moved").rename(program)
    until(lambda: scene.status("1") == "merged")
    assert scene.ok("inbox", "--json").json == []


def test_the_doctor_names_an_agent_without_a_login_and_how_to_log_in(scene):
    program = scene.folder / "claude"
    program.write_text("#!/bin/sh\necho '{\"loggedIn\": false}'\nexit 1\n")
    program.chmod(0o755)
    scene.ok("config", "set", "agents.claude.command", str(program))
    scene.ok("config", "set", "agents.worker_default", "claude")
    said = scene.crew("doctor", "--json")
    (found,) = [one for one in said.json if one["check"] == "agents"]
    assert (said.code, found["state"]) == (1, "wrong")
    assert "claude auth login" in found["fix"]


# Ctrl-C and SIGTERM


def said_by(process, words):
    """Read what it prints until it says this."""
    for line in process.stderr:
        if words in line:
            return line
    raise AssertionError(f"it ended without {words!r}")


def test_the_first_ctrl_c_says_what_it_waits_for_and_lets_the_step_finish(scene, running):
    scene.plan("1", "wait")
    scene.ok("new", "--title", "one")
    runner = running()
    until(lambda: scene.agent("A")["pid"] is not None)
    runner.send_signal(signal.SIGINT)
    line = said_by(runner, "stopping")
    assert "waiting for A (task 1)" in line
    assert "Ctrl-C again ends now" in line
    scene.let_go()
    assert runner.wait(timeout=PATIENCE_S) == 130
    assert (scene.root.parent / "my repo-worktrees/1/file-1").exists()


def slow_git(folder: Path) -> tuple[Path, str]:
    """A file that makes every git hang while it exists, and the PATH with that git."""
    slow, tools = folder / "slow", folder / "tools"
    tools.mkdir()
    (tools / "git").write_text(
        f'#!/bin/sh\nwhile [ -e "{slow}" ]; do sleep 0.1; done\nexec {shutil.which("git")} "$@"\n'
    )
    (tools / "git").chmod(0o755)
    return slow, f"{tools}:{os.environ['PATH']}"


def test_the_second_ctrl_c_ends_at_once_and_waits_for_no_git_call(scene, tmp_path):
    """Here git hangs at the checkpoint of the step that is ended."""
    slow, path = slow_git(tmp_path)
    scene.plan("1", "wait")
    scene.ok("new", "--title", "one")
    runner = scene.start("run", "--json", PATH=path)
    try:
        until(lambda: scene.agent("A")["pid"] is not None)
        (scene.root.parent / "my repo-worktrees/1/dirty").write_text("not committed\n")
        runner.send_signal(signal.SIGINT)
        said_by(runner, "Ctrl-C again")
        slow.touch()
        runner.send_signal(signal.SIGINT)
        out, err = runner.communicate(timeout=PATIENCE_S)
    finally:
        slow.unlink(missing_ok=True)
    assert runner.returncode == 130
    assert "ending now" in err
    assert json.loads(out)["error"]["code"] == "interrupted"
    scene.let_go()
    scene.ok("run", "--drain")
    assert scene.status("1") == "merged"


@pytest.mark.faults
def test_a_stop_ends_gits_that_hang_at_its_time_limit(scene, tmp_path):
    config = scene.root / ".crew/config.toml"
    config.write_text(config.read_text().replace("[run]", '[run]\nstop_timeout = "1s"', 1))
    slow, path = slow_git(tmp_path)
    scene.plan("1", "wait")
    scene.ok("new", "--title", "one")
    runner = scene.start("run", PATH=path)
    until(lambda: scene.agent("A")["pid"] is not None)
    (scene.root.parent / "my repo-worktrees/1/dirty").write_text("not committed\n")
    slow.touch()
    began = time.monotonic()
    try:
        scene.ok("stop", "--now")
        assert time.monotonic() - began < 100, "it waited for the limit of a single git"
        runner.communicate(timeout=PATIENCE_S)
    finally:
        slow.unlink(missing_ok=True)
    scene.let_go()
    scene.ok("run", "--drain")
    assert scene.status("1") == "merged"


def test_sigterm_ends_in_time_with_a_checkpoint_and_the_next_runner_goes_on(scene, running):
    config = scene.root / ".crew/config.toml"
    config.write_text(config.read_text().replace("[run]", '[run]\nstop_timeout = "1s"', 1))
    scene.plan("1", "wait")
    scene.ok("new", "--title", "one")
    runner = running()
    until(lambda: scene.agent("A")["pid"] is not None)
    (scene.root.parent / "my repo-worktrees/1/dirty").write_text("not committed\n")
    runner.terminate()
    assert "ended in 1 s are ended" in said_by(runner, "stopping")
    assert runner.wait(timeout=PATIENCE_S) == 0
    assert "dirty" in scene.git("ls-tree", "--name-only", "refs/crew/checkpoints/1/1")
    scene.let_go()
    scene.ok("run", "--drain")
    assert scene.status("1") == "merged"


# no gate


def test_a_crew_without_a_gate_says_so_at_its_start_in_the_merge_and_in_show(scene):
    scene.ok("new", "--title", "one")
    said = scene.ok("run", "--drain")
    first = said.err.splitlines()[0]
    assert first.startswith("warning: nothing is tested: no gate is set or found")
    assert "`crew config set complete.command 'make test'` sets one" in first
    assert "\nGate: none\n" in scene.git("log", "-1", "--format=%B", "main")
    assert "  gate: none\n" in scene.ok("show", "1").out
    assert scene.ok("show", "1", "--json").json["gate"] == "none"
    scene.ok("config", "set", "complete.command", "test -f readme")
    scene.ok("new", "--title", "two")
    said = scene.ok("run", "--drain")
    assert "nothing is tested" not in said.err
    assert "\nGate: test -f readme\n" in scene.git("log", "-1", "--format=%B", "main")
    assert "  gate: test -f readme\n" in scene.ok("show", "2").out


def test_a_gate_that_is_required_and_not_there_is_refused(scene):
    scene.ok("new", "--title", "one")
    scene.ok("config", "set", "complete.require_gate", "true")
    for args in (["run", "--drain"], ["complete", "1"], ["merge", "1"]):
        assert "`crew config set complete.command" in scene.refused(6, "no_gate", *args).hint
    assert scene.status("1") == "todo"


def test_a_task_that_takes_the_gate_away_is_not_merged_where_one_is_required(scene):
    (scene.root / "pytest.ini").write_text("")
    scene.git("add", "pytest.ini")
    scene.git("commit", "-q", "-m", "a gate")
    (scene.folder / "agent.sh").write_text(
        "git rm -q --ignore-unmatch pytest.ini; echo 1 > one; git add -A; git commit -qm one; "
        "echo DONE\n"
    )
    scene.configure("[complete]\nrequire_gate = true\n[review]\nmax_rounds = 2\n")
    scene.ok("new", "--title", "one")
    said = scene.crew("run", "--drain")
    assert said.code == 6
    assert scene.status("1") == "error"
    assert scene.git("ls-tree", "--name-only", "main", "pytest.ini") == "pytest.ini"


def with_a_submodule(scene) -> str:
    """A submodule in `lib`; the folder of its clone."""
    source = scene.root.parent / "library"
    scene.git("clone", "-q", str(scene.root), str(source))
    scene.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source), "lib")
    scene.git("commit", "-q", "-m", "with a library")
    return str(scene.root / ".git" / "modules" / "lib")


def test_submodules_that_a_gate_would_need_are_named_at_the_start(scene):
    clone = with_a_submodule(scene)
    scene.ok("config", "set", "complete.command", "true")
    scene.ok("new", "--title", "one")
    assert "the files of lib" not in scene.ok("run", "--drain").err
    shutil.rmtree(clone)
    said = scene.ok("run", "--drain").err
    assert "warning: neither agents nor the gate get the files of lib" in said
    assert "`git submodule update --init --recursive`" in said


# crew init


def test_init_notices_tickets_submodules_and_what_ci_runs(bare_scene):
    root = bare_scene.root
    (root / ".tickets").mkdir()
    shutil.rmtree(with_a_submodule(bare_scene))
    (root / ".github/workflows").mkdir(parents=True)
    workflow = "jobs:\n  a:\n    steps:\n      - run: pip install .\n      - run: |\n"
    (root / ".github/workflows/ci.yml").write_text(f"{workflow}          ./run tests --all\n")
    said = bare_scene.ok("init").out
    assert "`crew init --tasks tk`" in said
    assert "neither agents nor the gate get the files of lib" in said
    assert ".github/workflows/ci.yml runs it: " in said
    assert "`crew config set complete.command './run tests --all'`" in said
    assert "only .crew/tasks/ shows in `git status`" in said
    found = bare_scene.ok("init", "--json").json
    assert found["suggested_gate"]["command"] == "./run tests --all"
    assert (found["tickets"], found["submodules"]) == (True, True)
    assert found["empty_submodules"] == ["lib"]


def test_only_tasks_show_in_git_status_also_of_a_linked_worktree(scene):
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain")
    linked = scene.root.parent / "linked"
    scene.git("worktree", "add", "-q", str(linked), "-b", "side")
    scene.ok("init", cwd=linked)
    shown = scene.git("status", "--porcelain", "-uall").splitlines()
    assert shown
    assert all(line.startswith("?? .crew/tasks/default/") for line in shown), shown
    assert scene.git("-C", str(linked), "status", "--porcelain", "-uall") == ""


def test_an_agent_that_can_change_no_file_is_given_no_tasks(scene):
    scene.ok("spawn", "A")
    scene.refused(2, "not_a_worker", "agents", "set", "A", "claude-reviewer")
    assert kinds(scene)["A"] != "claude-reviewer"


def test_a_kind_that_works_is_not_retried_and_not_taken_for_a_task(scene):
    assert "claude" in scene.refused(5, "not_paused", "retry", "claude").message
