"""Reviewers of every kind see the change, and run tests in their own copy if they are asked to."""

import json

import pytest

from real_clis.cli_kinds import CLIS
from real_clis.scripted_model import Say

pytestmark = [pytest.mark.timeout(240), pytest.mark.clis]

WORK = CLIS["claude"].run("echo hello > new.txt && git add new.txt && git commit -qm new")


@pytest.fixture
def reviewed(crew, script, cli):
    """Work of Claude Code that a kind of this CLI reviews; returns what the reviewer was asked."""

    def reviewed(kind, *steps):
        crew.configure(f'[review]\nmode = "single"\nagent = ["{kind}"]')
        crew.use(cli, "review", kind)
        script(WORK, Say("DONE"))
        play = script(*steps, name="review")
        task = crew("new", "--title", "Write new.txt")
        crew("run", "--agents", "1", "--drain")
        assert json.loads(crew("show", task, "--json"))["status"] == "merged"
        return [json.dumps(asked.body) for asked in play.turns]

    return reviewed


@pytest.mark.ability("reviews: sees the change")
def test_a_reviewer_is_told_the_change(cli, reviewed):
    told = reviewed(f"{cli.name}-reviewer", Say("Good.\nPASS"))
    assert "+hello" in told[0]


@pytest.mark.ability("reviews: runs tests in its own copy (`-tester`)")
def test_a_tester_runs_commands_in_its_own_copy(cli, reviewed, repo):
    runs = cli.run("touch left-over; grep -c hello new.txt | sed s/^/counted-/")
    told = reviewed(f"{cli.name}-tester", runs, Say("Good.\nPASS"))
    assert "counted-1" in told[1]
    assert not (repo / "left-over").exists()
