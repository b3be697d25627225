"""From `crew init` to a merged task with the real Claude Code as the agent."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agents.running import processes_holding, wait_until
from real_clis.anthropic_messages import INPUT_TOKENS
from real_clis.scripted_model import Say, Tool

pytestmark = pytest.mark.timeout(120)  # several commands and several starts of the agent

CREW = Path(sys.executable).with_name("crew")


def bash(command):
    return Say(tools=(Tool(name="Bash", input={"command": command, "description": "work"}),))


WORK = bash("echo hello > new.txt && git add new.txt && git commit -qm 'add new.txt'")


@pytest.fixture
def crew(repo, caller, model_env):
    """The command line in a repository whose agent is Claude Code, pointed at the script."""

    def start(*arguments):
        return subprocess.Popen(
            [CREW, *arguments],
            cwd=repo,
            env=caller,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def crew(*arguments):
        running = start(*arguments)
        try:
            answer, said = running.communicate(timeout=60)
        finally:
            running.kill()
            running.communicate()
        assert running.returncode == 0, said
        return answer.strip()

    crew.start = start
    crew("init")
    env = "".join(f"{name} = {json.dumps(value)}\n" for name, value in model_env.items())
    with (repo / ".crew" / "config.toml").open("a") as config:
        config.write(
            '\n[agents]\nworker_default = "claude"\n'
            f"[agents.claude.env]\n{env}"
            '[complete]\ncommand = "grep -q hello new.txt"\n'
            "[run]\nbackoff_s = 0.01\n"
        )
    return crew


def test_a_task_is_worked_on_in_one_session_gated_and_merged(crew, script, repo, git):
    play = script(Say("I looked around."), WORK, Say("Committed.\nDONE"))
    task = crew("new", "--title", "Write new.txt", "--body", "with hello in it")
    crew("run", "--agents", "1", "--drain")
    shown = json.loads(crew("show", task, "--json"))
    assert shown["status"] == "merged"
    assert git("log", "--format=%s", "--no-merges", at=repo) == "add new.txt\nfirst"
    assert (repo / "new.txt").read_text() == "hello\n"
    assert "Write new.txt" in json.dumps(play.turns[0].body)
    assert "I looked around." in json.dumps(play.turns[1].body["messages"])
    (agent,) = json.loads(crew("ps", "--json"))
    assert agent["total_input_tokens"] == 3 * INPUT_TOKENS
    assert agent["total_cost_usd"] > 0


def test_a_runner_killed_in_the_middle_of_a_tool_is_started_again_and_finishes(
    crew, script, remembered, repo, marker
):
    script(bash(f"echo half > half.txt; exec -a {marker} tail -f /dev/null"))
    task = crew("new", "--title", "Write new.txt")
    runner = crew.start("run", "--agents", "1", "--drain")
    try:
        wait_until(lambda: processes_holding(marker) and marker in remembered())
    finally:
        os.kill(runner.pid, signal.SIGKILL)
        runner.communicate()
    play = script(bash("rm half.txt"), WORK, Say("DONE"))
    crew("run", "--drain")
    assert json.loads(crew("show", task, "--json"))["status"] == "merged"
    assert "half.txt" in json.dumps(play.turns[0].body["messages"])  # it knows what it did
    assert processes_holding(marker) == []
    assert (repo / "new.txt").read_text() == "hello\n"
