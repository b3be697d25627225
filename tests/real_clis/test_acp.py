"""Real agents with the Agent Client Protocol: Claude Code's own bridge, and OpenCode."""

import json
from dataclasses import replace

import pytest

from agents.conftest import need
from agents.contract import run_step
from crew.agents.adapter import AgentSpec, adapter_for
from real_clis.cli_kinds import CLIS
from real_clis.conftest import find_cli
from real_clis.scripted_model import Fail, Say

pytestmark = [pytest.mark.timeout(240), pytest.mark.clis]

AGENTS = {"claude-agent-acp": ("claude", ()), "opencode": ("opencode", ("acp",))}


@pytest.fixture(params=AGENTS)
def acp(request, caller, model):
    """A CLI and the adapter of the agent that drives it."""
    need(found := find_cli(request.param), request.param)
    name, args = AGENTS[request.param]
    env = {**CLIS[name].env(f"{model.address}/s/play"), "CLAUDE_CODE_MAX_RETRIES": "0"}
    spec = AgentSpec(name="mine", adapter="acp", command=str(found), args=args, env=env)
    return CLIS[name], adapter_for(spec, caller=caller)


@pytest.mark.ability(
    "works over the Agent Client Protocol (`claude-agent-acp`, `opencode acp`)",
    "claude",
    "opencode",
    otherwise="refused: use its own adapter",
)
def test_it_works_commits_and_resumes_its_session(acp, script, order, git):
    cli, agent = acp
    work = cli.run("echo hello > new.txt && git add -A && git commit -qm 'by the agent'")
    script(work, Say("the word is kiwi\nDONE"))
    first = run_step(agent, order)
    assert (first.error, first.done) == (None, True)
    assert git("log", "-1", "--format=%an %s", at=order.worktree) == "Ann by the agent"
    play = script(Say("DONE"))
    again = replace(order, resume=True, prompt="go on", session=first.session)
    second = run_step(agent, again)
    assert (second.error, second.done) == (None, True)
    assert "the word is kiwi" in json.dumps(play.turns[0].body)


def test_it_gets_crews_own_tools(acp, script, order, model):
    _, agent = acp
    script(Say("DONE"))
    env = {**order.env, "CREW_MCP_URL": f"{model.address}/mcp", "CREW_TOKEN": "token-of-the-run"}
    assert run_step(agent, replace(order, env=env)).error is None
    headers = [headers for path, headers in model.unanswered if path == "/mcp"]
    assert {name.lower(): value for name, value in headers[0].items()}["authorization"] == (
        "Bearer token-of-the-run"
    )


def test_an_error_of_the_model_is_an_error_of_the_step(acp, script, order):
    _, agent = acp
    script(Fail(401, "invalid_api_key", "bad key", times=-1))
    assert run_step(agent, order).error is not None
