"""Each of the four CLIs at its adapter: a step, a resumed session, an error of the model."""

import json
import os
import signal
from dataclasses import replace

import pytest

from agents.contract import SILENT, run_step
from agents.running import wait_until
from crew.agents.environment import shim_folder
from crew.domain.rows.step import ErrorKind
from real_clis.company import Company
from real_clis.scripted_model import Fail, Say

COMMIT = "git add -A && git commit -qm 'by the agent'"
FOR_EVER = -1

pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize(
    "cli", [pytest.param("opencode", marks=pytest.mark.clis), "gemini"], indirect=True
)
def test_it_writes_commits_and_says_done(cli, agent_of, script, order, git):
    play = script(cli.run(f"echo hello > new.txt && {COMMIT}"), Say("ok\nDONE"))
    outcome = run_step(agent_of(cli), replace(order, prompt="write new.txt"))
    assert outcome.error is None
    assert outcome.done
    assert git("log", "--format=%an %s", at=order.worktree) == "Ann by the agent\nAnn first"
    assert git("show", "HEAD:new.txt", at=order.worktree) == "hello"
    assert "write new.txt" in json.dumps(play.turns[0].body)


@pytest.mark.ability("resumes its session in the next step")
def test_a_resumed_session_remembers(cli, agent_of, script, order):
    script(Say("the word is kiwi"))
    first = run_step(agent_of(cli), order)
    play = script(Say("DONE"))
    again = replace(order, resume=True, prompt="go on", session=first.session)
    second = run_step(agent_of(cli), again)
    assert (first.error, second.error, second.done) == (None, None, True)
    assert "the word is kiwi" in json.dumps(play.turns[0].body)


@pytest.mark.clis
def test_its_commands_find_the_crew_of_the_step_first(cli, agent_of, script, order):
    play = script(cli.run("command -v crew"), Say("DONE"))
    assert run_step(agent_of(cli), order).error is None
    assert str(shim_folder(order) / "crew") in json.dumps(play.turns[1].body)


@pytest.mark.ability("continues its session after `kill -9`")
@pytest.mark.clis
def test_a_killed_run_is_an_error_and_its_session_can_be_resumed(cli, agent_of, script, order):
    script(cli.run("touch up; tail -f /dev/null"))
    order, pids = replace(order, prompt="the word is kiwi"), []

    def kill(_on_loop):
        wait_until((order.worktree / "up").exists, limit_s=60)
        os.kill(pids[0], signal.SIGKILL)

    watch = replace(SILENT, started=pids.append)
    outcome = Company().run(agent_of(cli), order, kill, watch=watch)
    assert outcome.error.kind is ErrorKind.CRASHED
    play = script(Say("DONE"))
    again = replace(order, resume=True, prompt="go on", session=outcome.session)
    second = run_step(agent_of(cli), again)
    assert (second.error, second.done) == (None, True)
    assert "the word is kiwi" in json.dumps(play.turns[0].body)


@pytest.mark.ability("a wrong key is reported as an error of the login")
@pytest.mark.clis
def test_a_wrong_key_is_an_error_of_the_login(cli, agent_of, script, order):
    script(Fail(401, "invalid_api_key", "bad key", times=FOR_EVER))
    env = {"CLAUDE_CODE_MAX_RETRIES": "0"} if cli.name == "claude" else {}
    assert run_step(agent_of(cli, **env), order).error.kind is ErrorKind.AUTH
