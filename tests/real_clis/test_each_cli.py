"""Each of the four CLIs at its adapter: a step, a resumed session, an error of the model."""

import json
from dataclasses import replace

import pytest

from agents.contract import run_step
from crew.domain.rows.step import ErrorKind
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


def test_a_resumed_session_remembers(cli, agent_of, script, order):
    script(Say("the word is kiwi"))
    first = run_step(agent_of(cli), order)
    play = script(Say("DONE"))
    again = replace(order, resume=True, prompt="go on", session=first.session)
    second = run_step(agent_of(cli), again)
    assert (first.error, second.error, second.done) == (None, None, True)
    assert "the word is kiwi" in json.dumps(play.turns[0].body)


@pytest.mark.clis
def test_a_wrong_key_is_an_error_of_the_login(cli, agent_of, script, order):
    script(Fail(401, "invalid_api_key", "bad key", times=FOR_EVER))
    env = {"CLAUDE_CODE_MAX_RETRIES": "0"} if cli.name == "claude" else {}
    assert run_step(agent_of(cli, **env), order).error.kind is ErrorKind.AUTH
