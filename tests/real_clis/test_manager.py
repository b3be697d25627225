"""A real CLI as manager: it plans what a person asks for and starts the crew."""

import json

import pytest

from agents.running import wait_until
from crew.store.runner_lock import find_runner
from real_clis.scripted_model import Say, bash

pytestmark = pytest.mark.timeout(240)

WORK = "echo hello > new.txt && git add new.txt && git commit -qm new"


@pytest.mark.ability("plans and starts the crew as a manager")
@pytest.mark.clis
def test_instructions_become_a_task_and_a_crew_that_merges_it(cli, crew, script, repo):
    boss = script(
        cli.run('crew new --title "Write new.txt"'),
        cli.run("crew run --detach --agents 1 --drain"),
        Say("1: an agent works on it\nDONE"),
        Say("DONE"),
        Say("DONE"),
        name="boss",
    )
    script(bash(WORK), Say("DONE"))
    crew.use(cli, "boss", f"{cli.name}-manager")
    crew("manager", f"{cli.name}-manager", "--auto", "-p", "we need a file new.txt")
    assert "we need a file new.txt" in json.dumps(boss.turns[0].body)
    assert json.loads(crew("show", "1", "--json"))["status"] == "merged"
    assert (repo / "new.txt").read_text() == "hello\n"
    wait_until(lambda: find_runner(repo / ".crew" / "lock") is None)  # it drains
