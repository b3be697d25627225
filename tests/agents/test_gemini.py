"""Gemini CLI's events, exit codes and settings are understood."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

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
from crew.agents.gemini.gemini import gemini_argv
from crew.domain.rows.step import ErrorKind, Usage

__all__ = ["order"]

SESSION = "6a2f41a3-c54c-4e5b-a1f0-5b8a2f6fbb10"


def event(kind, **fields):
    return json.dumps({"type": kind, "timestamp": "2026-11-15T13:29:22.422Z", **fields})


def text(words, *, delta=False):
    return event("message", role="assistant", content=words, delta=delta)


def result(status="success", **fields):
    stats = {"total_tokens": 220, "input_tokens": 200, "output_tokens": 20, "models": {}}
    return event("result", status=status, stats=stats, **fields)


INIT = event("init", session_id=SESSION, model="gemini-2.5-pro")


def api_error(status):
    told_as = f'[API Error: {{"error":{{"message":"bad","code":{status},"status":"X"}}}}]'
    failed = result("error", error={"type": "unknown", "message": told_as})
    return {"lines": [INIT, failed], "code": status % 256}


def said(code, words):
    return {"code": code, "stderr": f"Warning: 256-color support not detected.\n{words}\n"}


def googles(code, message):
    """An error of Google's API, in the words of Gemini CLI."""
    told_as = f'[API Error: {{"error":{{"code":{code},"message":"{message}"}}}}]'
    return {"lines": [INIT, result("error", error={"message": told_as})], "code": code % 256}


QUOTA = "You exceeded your current quota, please check your plan and billing details."
METRIC = "Quota exceeded for metric: generate_content_free_tier_requests, limit:"
FOR_A_MINUTE = f"{QUOTA} For more, head to: https://ai.google.dev/gemini-api/docs/rate-limits."

FAILURES = {
    "401": (ErrorKind.AUTH, api_error(401)),
    "403": (ErrorKind.AUTH, api_error(403)),
    "429": (ErrorKind.RATE_LIMIT, api_error(429)),
    "500": (ErrorKind.OVERLOADED, api_error(500)),
    "503": (ErrorKind.OVERLOADED, api_error(503)),
    "400": (ErrorKind.CRASHED, api_error(400)),
    "401 by its exit code alone": (ErrorKind.AUTH, {"lines": [INIT], "code": 145}),
    "429 on stderr": (
        ErrorKind.RATE_LIMIT,
        said(1, "Error: _ApiError\n    at x {\n  status: 429\n}"),
    ),
    "wrong key": (ErrorKind.AUTH, googles(400, "API key not valid. Please pass a valid API key.")),
    "old key": (ErrorKind.AUTH, googles(400, "API key expired. Please renew the API key.")),
    "no credits": (ErrorKind.BILLING, googles(429, "Your prepayment credits are depleted.")),
    "ended quota": (ErrorKind.BILLING, googles(429, QUOTA)),
    "a model without quota": (ErrorKind.BILLING, googles(429, f"{FOR_A_MINUTE} * {METRIC} 0")),
    "a limit in other words": (ErrorKind.RATE_LIMIT, googles(429, FOR_A_MINUTE)),
    "a small limit": (ErrorKind.RATE_LIMIT, googles(429, f"{FOR_A_MINUTE} * {METRIC} 10")),
    "too long": (
        ErrorKind.CONTEXT_FULL,
        said(144, "Error: The input token count exceeds the maximum number of tokens allowed 9."),
    ),
    "no auth": (ErrorKind.AUTH, said(41, "Please set an Auth method in your settings.json")),
    "untrusted": (ErrorKind.PERMISSION_DENIED, said(55, "This folder is not trusted by you")),
    "no session": (
        ErrorKind.SESSION_UNKNOWN,
        said(42, "Error resuming session: No previous sessions found for this project."),
    ),
    "another session": (
        ErrorKind.SESSION_UNKNOWN,
        said(42, f'Error resuming session: Invalid session identifier "{SESSION}".\n  Use --list'),
    ),
    "session exists": (
        ErrorKind.SESSION_IN_USE,
        said(42, f'Error starting session: Session ID "{SESSION}" already exists. Use --resume'),
    ),
    "an error but exit 0": (
        ErrorKind.CRASHED,
        {"lines": [INIT, result("error", error={"message": "something odd"})], "code": 0},
    ),
    "an error without a message": (
        ErrorKind.CRASHED,
        {"lines": [INIT, result("error")], "code": 0},
    ),
    "told to end, and exit 0": (ErrorKind.CRASHED, {"lines": [INIT, text("DONE")], "code": 0}),
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Where Gemini CLI has its settings."""
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.delenv("GEMINI_CLI_HOME", raising=False)
    return path


class TestGeminiAdapter(StreamContract):
    FAILURES = FAILURES

    @pytest.fixture
    def stage(self, tmp_path):
        def make(*acts):
            words = shell_lines([("say", None), *acts], lambda told: text(told) if told else INIT)
            end = f"printf '%s\\n' {shlex.quote(result())}\n"
            keep = f"cat > {shlex.quote(str(tmp_path / 'prompt'))}\n"
            made = program(tmp_path / "gemini", f"{keep}{words}{end}")
            return AgentSpec(name="gemini", adapter="gemini", command=str(made))

        return make

    @pytest.fixture
    def heard_prompt(self, tmp_path):
        return lambda: (tmp_path / "prompt").read_bytes().decode()

    @pytest.fixture
    def fake(self, gemini):
        return lambda lines=(), **played: gemini(*lines, **played)


@pytest.fixture
def gemini(tmp_path):
    def make(*lines, system_prompt="", args=(), **played):
        made = replaying(tmp_path / "fake", "gemini", *lines, **played)
        return adapter_for(
            AgentSpec(
                name="gemini",
                adapter="gemini",
                command=str(made),
                system_prompt=system_prompt,
                args=args,
            )
        )

    return make


def test_a_session_has_the_name_that_crew_gives_it(gemini, order, tmp_path):
    run_step(gemini(INIT, result()), order)
    assert told(tmp_path / "fake") == [
        *("-o", "stream-json", "--skip-trust", "--session-id", SESSION, "--approval-mode=yolo")
    ]
    run_step(gemini(INIT, result()), replace(order, resume=True))
    assert told(tmp_path / "fake")[3:5] == ["--resume", SESSION]


def test_the_agents_own_arguments_decide_what_it_may_do(order):
    spec = AgentSpec(name="g", adapter="gemini", model="pro", args=("--approval-mode=plan",))
    assert gemini_argv(spec, order)[-3:] == ("-m", "pro", "--approval-mode=plan")


def test_only_a_new_session_is_told_its_instructions(gemini, order, tmp_path):
    run_step(gemini(INIT, result(), system_prompt="be kind"), order)
    assert (tmp_path / "fake" / "stdin").read_text() == "be kind\n\ndo it"
    run_step(gemini(INIT, result(), system_prompt="be kind"), replace(order, resume=True))
    assert (tmp_path / "fake" / "stdin").read_text() == "do it"


def test_usage_is_that_of_this_run(gemini, order):
    adapter = gemini(INIT, result())
    for step in (order, replace(order, resume=True)):
        usage = run_step(adapter, step).usage
        assert usage == Usage(input_tokens=200, output_tokens=20, cost_usd=None)


def test_a_message_that_comes_in_pieces_is_one(gemini, order):
    pieces = [text("al", delta=True), text("l\nDO", delta=True), text("NE", delta=True)]
    tool = event("tool_use", tool_name="run_shell_command", parameters={"command": "ls"})
    outcome = run_step(gemini(INIT, *pieces, tool, text("fin", delta=True), result()), order)
    assert (outcome.done, outcome.text) == (True, "all\nDONE\nfin\n")


def test_what_it_is_doing_is_told_as_it_does_it(gemini, order):
    lines = []
    tool = event("tool_use", tool_name="run_shell_command", parameters={"command": "pytest -q"})
    adapter = gemini(INIT, tool, event("error", message="retrying"), result())
    run_step(adapter, order, Watch(started=SILENT.started, doing=lines.append))
    assert lines == ["run_shell_command: pytest -q", "retrying"]


def test_who_commits_travels_in_the_environment(gemini, order, monkeypatch):
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    Path.home().joinpath(".gitconfig").write_text("[user]\nname = Ann B\nemail = a@b\n")
    run_step(gemini(INIT, result(), script="env > found"), order)
    found = (order.worktree / "found").read_text()
    assert "GIT_AUTHOR_NAME=Ann B\n" in found
    assert "GIT_AUTHOR_EMAIL=a@b\n" in found
