"""A real Claude Code as manager: it plans what a person asks for and starts the crew."""

import json

import pytest

from agents.running import wait_until
from crew.store.runner_lock import find_runner
from real_clis.cli_kinds import claude_env
from real_clis.conftest import as_toml
from real_clis.scripted_model import Say, bash

WORK = "echo hello > new.txt && git add new.txt && git commit -qm new"


@pytest.mark.ability("as manager it plans and starts the crew", "claude")
@pytest.mark.clis
def test_instructions_become_a_task_and_a_crew_that_merges_it(crew, script, model, repo):
    boss = script(
        bash('crew new --title "Write new.txt"'),
        bash("crew run --detach --agents 1 --drain"),
        Say("1: an agent works on it\nDONE"),
        Say("DONE"),
        Say("DONE"),
        name="boss",
    )
    script(bash(WORK), Say("DONE"))
    crew.configure(f"[agents.claude-manager.env]\n{as_toml(claude_env(f'{model.address}/s/boss'))}")
    crew("manager", "--auto", "-p", "we need a file new.txt")
    assert "we need a file new.txt" in json.dumps(boss.turns[0].body["messages"])
    assert json.loads(crew("show", "1", "--json"))["status"] == "merged"
    assert (repo / "new.txt").read_text() == "hello\n"
    wait_until(lambda: find_runner(repo / ".crew" / "lock") is None)  # it drains
