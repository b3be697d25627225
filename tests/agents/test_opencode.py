"""OpenCode's events, errors and costs are understood, and its worktree's settings stay off."""

import json
import shlex
from dataclasses import replace

import pytest

from agents.contract import (
    SILENT,
    StreamContract,
    order,
    program,
    replaying,
    run_step,
    shell_lines,
    told,
)
from crew.agents.adapter import AgentSpec, Watch, adapter_for
from crew.agents.opencode.opencode import opencode_argv, own_config
from crew.domain.rows.step import ErrorKind, Usage
from crew.system.processes.ownership import owned_processes

__all__ = ["order"]

SESSION = "ses_e209d4239ffexdgH0Ldec5nctv"


def event(kind, **fields):
    return json.dumps({"type": kind, "sessionID": SESSION, **fields})


def text(words):
    return event("text", part={"type": "text", "text": words})


def finish(reason="stop", *, cost=0, tokens=None):
    used = {"input": 60, "output": 10, "reasoning": 2, "cache": {"write": 1, "read": 40}}
    return event("step_finish", part={"reason": reason, "tokens": tokens or used, "cost": cost})


def used_tool(name):
    state = {"status": "completed", "input": {}, "output": "done"}
    return event("tool_use", part={"type": "tool", "tool": name, "state": state})


def error(name, message, status=None):
    data = {"message": message, "statusCode": status, "isRetryable": False}
    return event("error", error={"name": name, "data": data})


START = event("step_start", part={"type": "step-start"})


def failing(*lines, **played):
    return {"lines": [START, *lines], **played}


def logged(name, message):
    """An error whose event has only its reference in the log."""
    data = {"message": "Unexpected server error. Check server logs for details.", "ref": "err_2"}
    line = (
        'timestamp=2026-11-19T15:41:17.489Z level=ERROR run=a1 message=failed ref={} error="{}" '
        'cause="{}\\n    at SessionPrompt.getModel (chunk.js:1142:11505)"\n'
    )
    words = f"{name}: {message}"
    lines = [line.format("err_1", "OtherError: x", ""), line.format("err_2", words, words)]
    return failing(
        event("error", error={"name": "UnknownError", "data": data}), stderr="".join(lines)
    )


FAILURES = {
    "401": (ErrorKind.AUTH, failing(error("APIError", "Unauthorized", 401))),
    "no key": (ErrorKind.AUTH, failing(error("ProviderAuthError", "no key for this provider"))),
    "unknown model": (
        ErrorKind.UNKNOWN_MODEL,
        logged("ProviderModelNotFoundError", "Model not found: a/b. Did you mean: b?"),
    ),
    "unknown without words": (ErrorKind.CRASHED, logged("OddError", "odd")),
    "a wrong key of Google": (ErrorKind.AUTH, failing(error("APIError", "API key not valid", 400))),
    "ended quota": (
        ErrorKind.BILLING,
        failing(error("APIError", "You exceeded your quota: insufficient_quota", 429)),
    ),
    "402": (ErrorKind.BILLING, failing(error("APIError", "pay first", 402))),
    "429": (ErrorKind.RATE_LIMIT, failing(error("APIError", "slow down", 429))),
    "503": (ErrorKind.OVERLOADED, failing(error("APIError", "busy", 503))),
    "malformed": (ErrorKind.CRASHED, failing(error("UnknownError", "JSON parsing failed"))),
    "overflow": (ErrorKind.CONTEXT_FULL, failing(error("ContextOverflowError", "too much"))),
    "too long": (
        ErrorKind.CONTEXT_FULL,
        failing(error("APIError", "This model's maximum context length is 10 tokens", 400)),
    ),
    "an error but exit 0": (ErrorKind.CRASHED, failing(error("UnknownError", "odd"), code=0)),
    "no words": (ErrorKind.CRASHED, failing(event("error", error="odd"), code=0)),
    "a tool was refused": (ErrorKind.PERMISSION_DENIED, failing(finish("tool-calls"), code=0)),
    "cut off": (ErrorKind.CRASHED, failing(finish("length"), code=0)),
    "a second message began": (ErrorKind.CRASHED, failing(finish(), START, code=0)),
    "unknown session": (
        ErrorKind.SESSION_UNKNOWN,
        {"stderr": "\x1b[91m\x1b[1mError: \x1b[0mSession not found\n"},
    ),
}


class TestOpenCodeAdapter(StreamContract):
    FAILURES = FAILURES

    @pytest.fixture
    def stage(self, tmp_path):
        def make(*acts):
            words = shell_lines([("say", None), *acts], lambda said: text(said) if said else START)
            end = f"printf '%s\\n' {shlex.quote(finish())}\n"
            keep = f"cat > {shlex.quote(str(tmp_path / 'prompt'))}\n"
            made = program(tmp_path / "opencode", f"{keep}{words}{end}")
            return AgentSpec(name="opencode", adapter="opencode", command=str(made))

        return make

    @pytest.fixture
    def order(self, order):
        """OpenCode names its sessions itself; this one is named already."""
        return replace(order, session=SESSION)

    @pytest.fixture
    def heard_prompt(self, tmp_path):
        return lambda: (tmp_path / "prompt").read_bytes().decode()

    @pytest.fixture
    def fake(self, opencode):
        return lambda lines=(), **played: opencode(*lines, **played)


@pytest.fixture
def opencode(tmp_path):
    def make(*lines, system_prompt="", **played):
        made = replaying(tmp_path / "fake", "opencode", *lines, **played)
        return adapter_for(
            AgentSpec(
                name="opencode",
                adapter="opencode",
                command=str(made),
                system_prompt=system_prompt,
            )
        )

    return make


def test_a_session_keeps_the_name_and_folder_it_was_born_with(opencode, order, tmp_path):
    outcome = run_step(opencode(START, text("hi"), finish()), order)
    assert outcome.session == SESSION
    assert "--session" not in told(tmp_path / "fake")
    run_step(opencode(START, finish()), replace(order, session=SESSION, resume=True))
    assert told(tmp_path / "fake") == [
        *("run", "--format", "json", "--print-logs", "--log-level", "ERROR"),
        *("--pure", "--auto", "--dir", str(order.worktree)),
        *("--session", SESSION),
    ]


def test_a_session_whose_first_step_was_cut_short_is_found_again(opencode, order, tmp_path):
    run_step(opencode(START, code=137), order)
    run_step(opencode(START, finish()), replace(order, resume=True))
    assert told(tmp_path / "fake")[-2:] == ["--session", SESSION]


def test_only_a_new_session_is_told_its_instructions(opencode, order, tmp_path):
    run_step(opencode(START, finish(), system_prompt="be kind"), order)
    assert (tmp_path / "fake" / "stdin").read_text() == "be kind\n\ndo it"
    again = replace(order, session=SESSION, resume=True)
    run_step(opencode(START, finish(), system_prompt="be kind"), again)
    assert (tmp_path / "fake" / "stdin").read_text() == "do it"


def test_the_usage_of_all_its_messages_is_summed_up(opencode, order):
    lines = [START, finish("tool-calls", cost=0.25), START, text("x"), finish(cost=0.5)]
    outcome = run_step(opencode(*lines), order)
    assert outcome.usage == Usage(input_tokens=202, output_tokens=24, cost_usd=0.75)


@pytest.mark.parametrize(
    ("lines", "code", "cost"),
    [
        ([finish("tool-calls", cost=0.25), START, finish(cost=0.5)], 0, 0.75),
        ([finish("tool-calls", cost=0.25)], 0, 0.25),
        ([error("APIError", "slow", 429), START, finish(cost=0.5)], 0, 0.5),
        ([finish("tool-calls", cost=0.25), START], 137, None),
        ([finish("tool-calls", cost=0.25), START, text("half a")], 0, None),
        ([finish("tool-calls", cost=0.25)], 137, None),
        ([used_tool("task"), finish("tool-calls", cost=0.25), START, finish(cost=0.5)], 0, None),
        ([used_tool("bash"), finish("tool-calls", cost=0.25), START, finish(cost=0.5)], 0, 0.75),
    ],
)
def test_the_cost_is_that_of_all_its_calls_or_unknown(opencode, order, lines, code, cost):
    outcome = run_step(opencode(START, *lines, code=code), order)
    assert outcome.usage.cost_usd == cost


def test_an_error_it_got_over_is_none(opencode, order):
    lines = [START, error("APIError", "slow", 429), START, text("DONE"), finish()]
    outcome = run_step(opencode(*lines), order)
    assert (outcome.error, outcome.done) == (None, True)


def test_one_error_after_the_other_is_not_waited_out(opencode, order, marker):
    overflow = error("ContextOverflowError", "too much")
    script = f"while :; do printf '%s\\n' {shlex.quote(overflow)}; sleep 0.02; done"
    outcome = run_step(opencode(script=script), order)
    assert outcome.error.kind is ErrorKind.CONTEXT_FULL
    assert owned_processes(marker) == ()


def test_an_error_that_only_its_log_names_is_told(opencode, order):
    played = logged("ProviderModelNotFoundError", "Model not found: a/b.")
    error = run_step(opencode(*played.pop("lines"), **played), order).error
    assert error.message == "ProviderModelNotFoundError: Model not found: a/b."
    assert "crew config set agents.opencode.default_model" in error.remedy


def test_what_it_is_doing_is_told_as_it_does_it(opencode, order):
    lines = []
    tool = {"tool": "bash", "state": {"input": {"description": "tests", "command": "pytest -q"}}}
    adapter = opencode(START, event("tool_use", part=tool), text("hm"), finish())
    run_step(adapter, order, Watch(started=SILENT.started, doing=lines.append))
    assert lines == ["bash: pytest -q", "hm"]


def test_crews_tools_stand_beside_whatever_is_configured(order):
    env = {"CREW_MCP_URL": "http://127.0.0.1:1/mcp", "CREW_TOKEN": "secret"}
    told_to = replace(order, env=env)
    config = json.loads(own_config('{"model":"a/b","mcp":{"own":{}}}', told_to))
    assert config["model"] == "a/b"
    assert list(config["mcp"]) == ["own", "crew"]
    assert config["mcp"]["crew"]["url"] == "http://127.0.0.1:1/mcp"
    assert "secret" not in json.dumps(config)
    assert own_config("{ // a comment\n}", told_to) == "{ // a comment\n}"
    assert json.loads(own_config("", told_to))["mcp"]["crew"]
    assert own_config("", order) == ""


def test_the_worktrees_own_configuration_stays_off(opencode, order):
    env = {**order.env, "CREW_MCP_URL": "http://127.0.0.1:1/mcp"}
    run_step(opencode(START, finish(), script="env > found"), replace(order, env=env))
    found = (order.worktree / "found").read_text()
    assert "OPENCODE_DISABLE_PROJECT_CONFIG=1" in found
    assert '"crew"' in found


def test_model_and_arguments_are_said_each_time(order):
    spec = AgentSpec(name="o", adapter="opencode", model="a/b", args=("--variant", "high"))
    assert opencode_argv(spec, order, SESSION)[-4:] == ("--model", "a/b", "--variant", "high")
