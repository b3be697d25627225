"""The real Codex does what its two adapters believe of it."""

import json
import os
import signal
import time
import uuid
from dataclasses import replace

import pytest

from agents.contract import SILENT, run_step
from agents.running import processes_holding, wait_until, written
from crew.agents.adapter import AgentSpec, Interrupt, adapter_for
from crew.agents.codex.codex_flags import toml
from crew.domain.rows.step import ErrorKind, Usage
from crew.runner.views.read_log import entries_of_lines
from crew.system.processes.ownership import owned_processes
from real_clis.company import Company
from real_clis.openai_responses import INPUT_TOKENS, OUTPUT_TOKENS
from real_clis.scripted_model import Drop, Fail, Gate, Hang, Malformed, Say, Tool

COMMIT = "git add -A && git commit -qm 'by the agent'"
UNTIL_GO = "touch up; until [ -e go ]; do sleep 0.05; done"
FOR_EVER = -1


def shell(command, **values):
    return Say(tools=(Tool(name="exec_command", input={"cmd": command, **values}),))


def told(asked):
    return json.dumps(asked.body["input"])


@pytest.fixture
def make(codex, caller, codex_flags):
    def make(adapter, *args, sandbox="auto"):
        spec = AgentSpec(
            name="codex",
            adapter=adapter,
            command=codex,
            args=(*codex_flags, *args),
            env={"FAKE_KEY": "dummy"},
            sandbox=sandbox,
        )
        return adapter_for(spec, caller=caller)

    return make


@pytest.fixture(params=["codex", "codex-exec"])
def agent(request, make):
    """Both ways to drive it: by its app-server and by `exec`."""
    return lambda *args: make(request.param, *args)


@pytest.fixture
def app_server(make):
    return make("codex")


def test_a_helper_is_counted_and_its_words_are_not_the_agents(app_server, script, order):
    spawn = Tool(name="multi_agent_v1/spawn_agent", input={"message": "look around"})
    calls = [Say("one", delay_s=3), Say("two\nDONE", delay_s=1), Say("three")]
    play = script(Say(tools=(spawn,)), *calls)
    outcome = run_step(app_server, order)
    assert (outcome.error, outcome.done, len(play.turns)) == (None, False, 4)
    assert outcome.usage.input_tokens == 4 * INPUT_TOKENS
    entries = list(entries_of_lines(order.log.read_text().splitlines()))
    assert ("tool", "spawn agent") in {(one.kind, one.tool) for one in entries}
    said = {one.text: one.is_helper for one in entries if one.kind == "said"}
    assert said == {"one": False, "two\nDONE": True, "three": False}


def test_it_writes_commits_and_says_done(agent, script, order, git):
    play = script(shell(f"echo hello > new.txt && {COMMIT}"), Say("ok\nDONE"))
    long_prompt = "write new.txt\n" * 20_000  # more than one argument may hold
    outcome = run_step(agent(), replace(order, prompt=long_prompt))
    assert outcome.error is None
    assert (outcome.done, outcome.text) == (True, "ok\nDONE\n")
    assert git("log", "--format=%s", at=order.worktree) == "by the agent\nfirst"
    assert git("show", "HEAD:new.txt", at=order.worktree) == "hello"
    assert json.dumps(long_prompt.strip())[1:-1] in told(play.turns[0])


def test_a_resumed_session_remembers_and_only_what_is_new_is_paid(agent, script, order):
    script(shell("ls"), Say("the word is kiwi"))
    first = run_step(agent(), order)
    play = script(Say("DONE"))
    second = run_step(agent(), replace(order, resume=True, prompt="go on", session=first.session))
    assert (first.error, second.error, second.done) == (None, None, True)
    assert second.session == first.session
    assert "the word is kiwi" in told(play.turns[0])
    used = Usage(input_tokens=2 * INPUT_TOKENS, output_tokens=2 * OUTPUT_TOKENS, cost_usd=None)
    assert first.usage == used
    assert second.usage == Usage(
        input_tokens=INPUT_TOKENS, output_tokens=OUTPUT_TOKENS, cost_usd=None
    )


def test_a_session_nobody_knows_cannot_be_resumed(agent, script, order):
    play = script(Say("hi"))
    error = run_step(agent(), replace(order, resume=True, session=str(uuid.uuid4()))).error
    assert error.kind is ErrorKind.SESSION_UNKNOWN
    assert play.asked == []


BROKEN = {
    "a key that is not valid": (
        Fail(401, "invalid_api_key", "bad key", times=FOR_EVER),
        ErrorKind.AUTH,
    ),
    "too many requests": (
        Fail(429, "rate_limit_exceeded", "slow down", {"retry-after": "1"}, times=FOR_EVER),
        ErrorKind.RATE_LIMIT,
    ),
    "an account without credit": (
        Fail(429, "insufficient_quota", "You exceeded your quota", times=FOR_EVER),
        ErrorKind.BILLING,
    ),
    "a server that fails": (
        Fail(500, "server_error", "oh dear", times=FOR_EVER),
        ErrorKind.OVERLOADED,
    ),
    "a connection that always breaks": (Drop(times=FOR_EVER), ErrorKind.OVERLOADED),
    "a connection that breaks at once": (
        Drop(times=FOR_EVER, at_once=True),
        ErrorKind.OVERLOADED,
    ),
    "nonsense": (Malformed(times=FOR_EVER), ErrorKind.OVERLOADED),
    "a context that is full": (
        Fail(
            400,
            "context_length_exceeded",
            "Your input exceeds the context window of this model. Please adjust your input.",
            times=FOR_EVER,
        ),
        ErrorKind.CONTEXT_FULL,
    ),
}


@pytest.mark.ability(
    "each failure of its model has a kind: limit, billing, full context, overload",
    "codex",
    otherwise="tested with recorded events only",
)
@pytest.mark.parametrize("case", BROKEN)
def test_each_failure_of_the_model_has_its_kind(agent, script, order, case):
    step, kind = BROKEN[case]
    script(step)
    error = run_step(agent(), order).error
    assert error.kind is kind
    assert "\n" not in error.message


def test_a_connection_that_breaks_once_does_no_harm(agent, script, order):
    script(Drop(), Say("DONE"))
    outcome = run_step(agent(), order)
    assert (outcome.error, outcome.done) == (None, True)


def test_a_model_that_falls_silent_is_stalled(agent, script, order, marker):
    script(Hang())
    outcome = run_step(agent(), replace(order, idle_timeout_s=4.0))
    assert outcome.error.kind is ErrorKind.STALLED
    assert owned_processes(marker) == ()


def test_what_the_sandbox_denies_does_not_end_the_run(agent, script, order, tmp_path):
    outside = tmp_path.parent / f"{tmp_path.name}-outside.txt"
    play = script(shell(f"touch {outside}"), Say("I may not.\nDONE"))
    outcome = run_step(agent("-c", "sandbox_workspace_write.exclude_slash_tmp=true"), order)
    assert (outcome.error, outcome.done) == (None, True)
    assert not outside.exists()
    assert "Read-only file system" in told(play.turns[1])


def test_a_killed_run_is_an_error_and_its_session_can_be_resumed(agent, script, order, marker):
    tag = f"{marker}-in-a-tool"
    script(shell(f"touch up; exec -a {tag} tail -f /dev/null", yield_time_ms=30_000))
    pids = []
    company = Company()
    watch = replace(SILENT, started=pids.append)

    def kill(_on_loop):
        wait_until((order.worktree / "up").exists)
        os.kill(pids[0], signal.SIGKILL)

    outcome = company.run(agent(), order, kill, watch=watch)
    assert outcome.error.kind is ErrorKind.CRASHED
    assert processes_holding(tag) == []
    play = script(Say("DONE"))
    again = run_step(agent(), replace(order, resume=True, prompt="go on", session=outcome.session))
    assert (again.error, again.done) == (None, True)
    assert tag in told(play.turns[0])  # it knows what it did


def test_crews_own_tools_are_asked_for_with_the_token_of_the_run(agent, script, order, model):
    script(Say("DONE"))
    env = {**order.env, "CREW_MCP_URL": f"{model.address}/mcp", "CREW_TOKEN": "token-of-the-run"}
    outcome = run_step(agent(), replace(order, env=env))
    assert (outcome.error, outcome.done) == (None, True)
    headers = [headers for path, headers in model.unanswered if path == "/mcp"]
    assert {name.lower(): value for name, value in headers[0].items()}["authorization"] == (
        "Bearer token-of-the-run"
    )


HELD_S = 6.0
"""How long crew's tools are not there yet; a turn that did not wait would have begun by then."""


def test_a_turn_begins_when_crews_own_tools_are_there(app_server, script, order, model):
    play = script(Say("DONE"))
    model.answers_others.clear()
    env = {**order.env, "CREW_MCP_URL": f"{model.address}/mcp", "CREW_TOKEN": "token"}
    asked_too_early = []

    def hold(_on_loop):
        wait_until(lambda: any(path == "/mcp" for path, _ in model.unanswered))
        time.sleep(HELD_S)
        asked_too_early.extend(play.asked)
        model.answers_others.set()

    outcome = Company().run(app_server, replace(order, env=env), hold)
    assert (outcome.error, outcome.done) == (None, True)
    assert asked_too_early == []
    assert len(play.turns) == 1


def _lay_trap(worktree, proof):
    (worktree / ".codex").mkdir()
    (worktree / ".codex" / "config.toml").write_text(
        f'[mcp_servers.trap]\ncommand = "touch"\nargs = [{toml(str(proof))}]\n'
    )


def test_servers_that_the_worktree_brings_are_not_run(agent, script, order, tmp_path):
    _lay_trap(order.worktree, tmp_path / "trap")
    for resume in (False, True):
        script(shell("ls"), Say("DONE"))
        outcome = run_step(agent(), replace(order, resume=resume))
        order = replace(order, session=outcome.session)
        assert (outcome.error, outcome.done) == (None, True)
        assert not (tmp_path / "trap").exists()


def test_the_trap_of_that_test_does_catch_whoever_trusts_it(agent, script, order, tmp_path):
    _lay_trap(order.worktree, tmp_path / "trap")
    script(shell("ls"), Say("DONE"))
    trust = toml(str(order.worktree))
    run_step(agent("-c", f'projects={{{trust}={{"trust_level"="trusted"}}}}'), order)
    assert (tmp_path / "trap").exists()


@pytest.mark.ability("reads a message during its step", "codex")
def test_a_message_reaches_the_model_within_the_turn(app_server, script, order):
    play = script(shell(UNTIL_GO, yield_time_ms=30_000), Say("DONE"))
    company = Company()

    def speak(on_loop):
        wait_until((order.worktree / "up").exists)
        on_loop(company.say, "m1", "use the blue one")
        wait_until(lambda: '{"id":4,"result":' in written(order.log))
        assert company.heard == []
        (order.worktree / "go").touch()

    outcome = company.run(app_server, order, speak)
    assert (outcome.error, outcome.done, company.heard) == (None, True, ["m1"])
    assert "use the blue one" in told(play.turns[1])


@pytest.mark.ability("can be interrupted and continues its session", "codex")
def test_an_interrupted_step_ends_its_command_and_its_session_goes_on(
    app_server, script, order, marker
):
    tag = f"{marker}-in-a-tool"
    script(shell(f"touch up; exec -a {tag} tail -f /dev/null", yield_time_ms=30_000))
    company = Company()

    def interrupt(on_loop):
        wait_until((order.worktree / "up").exists)
        on_loop(company.controls.send, Interrupt())

    outcome = company.run(app_server, order, interrupt)
    assert (outcome.error, outcome.done) == (None, False)
    assert processes_holding(tag) == []
    play = script(Say("DONE"))
    again = replace(order, resume=True, prompt="go on", session=outcome.session)
    assert run_step(app_server, again).error is None
    assert tag in told(play.turns[0])


@pytest.mark.ability('asks a person for permission (`permissions = "ask"`)', "codex")
@pytest.mark.parametrize("answer", [True, False])
def test_a_person_decides_what_goes_beyond_the_sandbox(app_server, script, order, answer, tmp_path):
    outside = tmp_path.parent / f"{tmp_path.name}-outside.txt"
    wish = {"sandbox_permissions": "require_escalated", "justification": "I need it"}
    script(shell(f"touch {outside}", **wish), Say("DONE"))
    company = Company(answer)
    outcome = company.run(app_server, order)
    assert (outcome.error, outcome.done) == (None, True)
    (permission,) = company.asked
    assert str(outside) in permission.detail
    assert outside.exists() is answer


def test_two_steps_in_one_thread_are_refused_to_the_second(make, script, order):
    script(Say("hello"))
    first = run_step(make("codex-exec"), order)
    gate = Gate(Say("DONE"))
    script(gate)
    again = replace(order, resume=True, session=first.session)
    refused = []

    def second(_on_loop):
        wait_until(gate.reached.is_set)
        refused.append(run_step(make("codex-exec"), again))
        gate.opened.set()

    assert Company().run(make("codex-exec"), again, second).error is None
    assert refused[0].error.kind is ErrorKind.SESSION_IN_USE
