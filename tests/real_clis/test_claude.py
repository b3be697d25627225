"""The real Claude Code does what its adapter believes of it."""

import asyncio
import json
import os
import signal
import time
from dataclasses import replace

import pytest

from agents.conftest import sandbox
from agents.contract import SILENT, run_step
from agents.running import processes_holding, wait_until, written
from crew.domain.rows.step import ErrorKind, Usage
from crew.system.processes.ownership import owned_processes
from real_clis.anthropic_messages import INPUT_TOKENS, OUTPUT_TOKENS
from real_clis.company import Company
from real_clis.scripted_model import (
    Drop,
    Fail,
    Hang,
    Malformed,
    Say,
    Tool,
    too_many_requests,
    unified,
)

__all__ = ["sandbox"]

COMMIT = "git add -A && git commit -qm 'by the agent'"
FOR_EVER = -1


def bash(command):
    return Tool(name="Bash", input={"command": command, "description": "a command"})


def write(path, content="hello\n"):
    return Tool(name="Write", input={"file_path": str(path), "content": content})


def calls(*tools):
    return Say(tools=tools)


def used(turns):
    return {"input_tokens": turns * INPUT_TOKENS, "output_tokens": turns * OUTPUT_TOKENS}


def test_it_writes_commits_and_says_done(agent, script, order, git):
    play = script(calls(write(order.worktree / "new.txt")), calls(bash(COMMIT)), Say("ok\nDONE"))
    long_prompt = "write new.txt\n" * 20_000  # more than one argument may hold
    outcome = run_step(agent(), replace(order, prompt=long_prompt))
    assert outcome.error is None
    assert (outcome.done, outcome.text) == (True, "ok\nDONE\n")
    assert outcome.session == order.session
    assert git("log", "--format=%s", at=order.worktree) == "by the agent\nfirst"
    assert git("show", "HEAD:new.txt", at=order.worktree) == "hello"
    assert long_prompt.strip() in _words(play.turns[0])


def test_a_resumed_session_remembers_and_only_what_is_new_is_paid(agent, script, order):
    script(calls(bash("ls")), calls(bash("pwd")), Say("the word is kiwi"))
    first = run_step(agent(system_prompt="be kind"), order)
    play = script(Say("DONE"))
    again = replace(order, resume=True, prompt="go on", session=first.session)
    second = run_step(agent(system_prompt="be kind"), again)
    assert (first.error, second.error) == (None, None)
    assert second.session == first.session == order.session
    assert "the word is kiwi" in _words(play.turns[0])
    assert "be kind" in json.dumps(play.turns[0].body["system"])
    assert first.usage == Usage(**used(3), cost_usd=first.usage.cost_usd)
    assert second.usage == Usage(**used(1), cost_usd=pytest.approx(first.usage.cost_usd / 3))
    assert second.usage.cost_usd > 0


def test_a_run_that_is_woken_by_its_own_command_pays_for_both_parts(agent, script, order):
    later = Tool(
        name="Bash",
        input={"command": "echo ready", "description": "a command", "run_in_background": True},
    )
    script(calls(later), Say("I wait for it."), Say("DONE"))
    outcome = run_step(agent(), order)
    assert (outcome.error, outcome.done) == (None, True)
    assert outcome.usage == Usage(**used(3), cost_usd=outcome.usage.cost_usd)


def test_crews_own_tools_are_asked_for_with_the_token_of_the_run(agent, script, order, model):
    script(Say("DONE"))
    env = {**order.env, "CREW_MCP_URL": f"{model.address}/mcp", "CREW_TOKEN": "token-of-the-run"}
    outcome = run_step(agent(), replace(order, env=env))
    assert (outcome.error, outcome.done) == (None, True)
    headers = [headers for path, headers in model.unanswered if path == "/mcp"]
    assert headers[0]["Authorization"] == "Bearer token-of-the-run"


def test_a_session_that_exists_cannot_be_begun_again(agent, script, order):
    script(Say("hi"), Say("hi"))
    assert run_step(agent(), order).error is None
    assert run_step(agent(), order).error.kind is ErrorKind.SESSION_IN_USE


def test_a_session_nobody_knows_cannot_be_resumed(agent, script, order):
    play = script(Say("hi"))
    error = run_step(agent(), replace(order, resume=True)).error
    assert error.kind is ErrorKind.SESSION_UNKNOWN
    assert play.asked == []


BROKEN = {
    "a key that is not valid": (
        Fail(401, "authentication_error", "invalid x-api-key", times=FOR_EVER),
        ErrorKind.AUTH,
        "Invalid API key",
    ),
    "a rate limit that lasts": (
        Fail(429, "rate_limit_error", "slow down", {"retry-after": "300"}, times=FOR_EVER),
        ErrorKind.RATE_LIMIT,
        "429",
    ),
    "too much to do": (
        Fail(529, "overloaded_error", "Overloaded", times=FOR_EVER),
        ErrorKind.OVERLOADED,
        "529",
    ),
    "a server that fails": (
        Fail(500, "api_error", "oh dear", times=FOR_EVER),
        ErrorKind.OVERLOADED,
        "500",
    ),
    "a connection that always breaks": (
        Drop(times=FOR_EVER),
        ErrorKind.OVERLOADED,
        "ECONNRESET",
    ),
    "a connection that breaks at once": (
        Drop(times=FOR_EVER, at_once=True),
        ErrorKind.OVERLOADED,
        "Connection",
    ),
    "a prompt that is too long": (
        Fail(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
        ErrorKind.CONTEXT_FULL,
        "too long",
    ),
    "an account without credit": (
        Fail(400, "invalid_request_error", "Your credit balance is too low to access the API"),
        ErrorKind.BILLING,
        "Credit balance",
    ),
    "nonsense": (Malformed(times=FOR_EVER), ErrorKind.CRASHED, "malformed"),
}


@pytest.mark.ability(
    "each failure of its model has a kind: limit, billing, full context, overload", "claude"
)
@pytest.mark.parametrize("case", BROKEN)
def test_each_failure_of_the_model_has_its_kind(agent, script, order, case):
    step, kind, words = BROKEN[case]
    script(step)
    error = run_step(agent(CLAUDE_CODE_MAX_RETRIES="1"), order).error
    assert error.kind is kind
    assert words in error.message
    assert error.reset_at is None  # an API key is not told when


def test_the_end_of_a_subscriptions_limit_is_known(agent, script, order):
    resets_at = int(time.time()) + 3600
    play = script(too_many_requests(resets_at, times=FOR_EVER))
    subscriber = agent(ANTHROPIC_API_KEY="", CLAUDE_CODE_OAUTH_TOKEN="sk-ant-oat01-dummy")
    error = run_step(subscriber, order).error
    assert (error.kind, error.reset_at) == (ErrorKind.RATE_LIMIT, resets_at)
    assert len(play.turns) == 1


def test_a_subscription_that_is_not_used_up_has_no_limit_to_wait_for(agent, script, order):
    told = unified("allowed", int(time.time()) + 3600)
    script(
        Say(tools=(bash("ls"),), headers=told),
        Fail(429, "rate_limit_error", "slow down", {"retry-after": "300"}, times=FOR_EVER),
    )
    subscriber = agent(ANTHROPIC_API_KEY="", CLAUDE_CODE_OAUTH_TOKEN="sk-ant-oat01-dummy")
    error = run_step(subscriber, order).error
    assert (error.kind, error.reset_at) == (ErrorKind.RATE_LIMIT, None)


SHORT = {
    "a connection that breaks once": Drop(),
    "a rate limit of a second": Fail(429, "rate_limit_error", "wait", {"retry-after": "1"}),
    "one overload": Fail(529, "overloaded_error", "Overloaded"),
}


@pytest.mark.parametrize("case", SHORT)
def test_what_passes_by_itself_does_no_harm(agent, script, order, case):
    play = script(SHORT[case], Say("DONE"))
    outcome = run_step(agent(), order)
    assert (outcome.error, outcome.done) == (None, True)
    assert len(play.turns) == 2


def test_a_killed_run_is_an_error_and_its_session_can_be_resumed(
    agent, script, order, remembered, marker
):
    tag = f"{marker}-in-a-tool"
    script(calls(bash(f"exec -a {tag} tail -f /dev/null")))
    pids = []

    def kill(_on_loop):
        wait_until(lambda: processes_holding(tag) and tag in remembered())
        os.kill(pids[0], signal.SIGKILL)

    watch = replace(SILENT, started=pids.append)
    outcome = Company().run(agent(), order, kill, watch=watch)
    assert outcome.error.kind is ErrorKind.CRASHED
    assert "SIGKILL" in outcome.error.message
    assert processes_holding(tag) == []
    play = script(Say("DONE"))
    again = run_step(agent(), replace(order, resume=True, prompt="go on"))
    assert (again.error, again.done) == (None, True)
    assert tag in json.dumps(play.turns[0].body["messages"])


def test_a_model_that_falls_silent_is_stalled(agent, script, order, marker):
    script(Hang())
    outcome = run_step(agent(), replace(order, idle_timeout_s=4.0))
    assert outcome.error.kind is ErrorKind.STALLED
    assert owned_processes(marker) == ()


def test_a_denied_tool_does_not_end_the_run(agent, script, order, tmp_path):
    outside = tmp_path / "outside.txt"
    play = script(calls(write(outside)), Say("I may not.\nDONE"))
    outcome = run_step(agent(), order)
    assert (outcome.error, outcome.done) == (None, True)
    assert not outside.exists()
    assert '"is_error": true' in json.dumps(play.turns[1].body["messages"])


def test_root_may_skip_permissions_in_the_sandbox_where_it_is_another_user(agent, script, order):
    script(Say("DONE"))
    outcome = run_step(agent("--dangerously-skip-permissions"), order)
    assert (outcome.error, outcome.done) == (None, True)


def test_of_all_users_only_root_may_not_skip_permissions_without_the_sandbox(agent, script, order):
    script(Say("hi"))
    error = run_step(agent("--dangerously-skip-permissions", sandbox="off"), order).error
    refused = ErrorKind.PERMISSION_DENIED if os.getuid() == 0 else None
    assert (error and error.kind) is refused


def test_hooks_and_servers_that_the_worktree_brings_are_not_run(agent, script, order, tmp_path):
    _lay_traps(order.worktree, tmp_path)
    script(calls(bash("ls")), Say("DONE"))
    outcome = run_step(agent(), order)
    assert (outcome.error, outcome.done) == (None, True)
    assert not list(tmp_path.glob("trap-*"))


def test_the_traps_of_that_test_do_catch_whoever_lets_them(agent, script, order, tmp_path):
    _lay_traps(order.worktree, tmp_path)
    script(calls(bash("ls")), Say("DONE"))
    run_step(agent("--setting-sources", "user,project"), order)
    assert (tmp_path / "trap-SessionStart").exists()


def _lay_traps(worktree, proof):
    def touch(name):
        return {"type": "command", "command": f"touch {proof}/trap-{name}"}

    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd")
    settings = {"hooks": {name: [{"matcher": "", "hooks": [touch(name)]}] for name in events}}
    server = {"command": "touch", "args": [f"{proof}/trap-mcp"]}
    (worktree / ".claude").mkdir()
    for name in ("settings.json", "settings.local.json"):
        (worktree / ".claude" / name).write_text(
            json.dumps({**settings, "enableAllProjectMcpServers": True})
        )
    (worktree / ".mcp.json").write_text(json.dumps({"mcpServers": {"trap": server}}))


def test_a_step_that_is_cancelled_leaves_no_process_and_can_go_on(
    agent, script, order, remembered, sandbox
):
    marker = order.env["CREW_OWNER"]
    tag = f"{marker}-in-a-tool"
    script(calls(bash(f"echo up > up; exec -a {tag} tail -f /dev/null")))

    def is_up():
        return written(order.worktree / "up") and tag in remembered()

    async def cancel():
        step = asyncio.ensure_future(agent(sandbox=sandbox).run_step(order, SILENT))
        await asyncio.to_thread(wait_until, is_up)
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step

    asyncio.run(cancel())
    assert owned_processes(marker) == ()
    assert processes_holding(tag) == []
    play = script(Say("DONE"))
    outcome = run_step(agent(sandbox=sandbox), replace(order, resume=True, prompt="go on"))
    assert (outcome.error, outcome.done) == (None, True)
    assert tag in json.dumps(play.turns[0].body["messages"])  # it knows what it did


def _words(asked):
    """All text that a request carries."""
    texts = []
    for message in asked.body["messages"]:
        content = message["content"]
        blocks = [{"text": content}] if isinstance(content, str) else content
        texts += [block.get("text", "") for block in blocks]
    return "\n".join(texts)
