"""Codex is understood both ways it can be driven, and resumed with everything said again."""

import json
import shlex
from dataclasses import replace

import pytest

from agents.contract import SILENT, StreamContract, order, program, replaying, run_step, told
from agents.contract import shell_lines as lines_of
from crew.agents.adapter import AgentSpec, Watch, adapter_for
from crew.agents.codex_flags import codex_flags, toml
from crew.domain.step import ErrorKind, Usage

__all__ = ["order"]

THREAD = "01a1df53-64a4-7040-8246-f60744158f27"


def event(kind, **fields):
    return json.dumps({"type": kind, **fields})


def text(words):
    return event("item.completed", item={"id": "item_1", "type": "agent_message", "text": words})


def completed(tokens=100, output=10):
    usage = {"input_tokens": tokens, "cached_input_tokens": 40, "output_tokens": output}
    return event("turn.completed", usage=usage)


STARTED = event("thread.started", thread_id=THREAD)


def failed(words):
    return {
        "lines": [
            STARTED,
            event("turn.started"),
            event("error", message=words),
            event("turn.failed", error={"message": words}),
        ]
    }


EXEC_FAILURES = {
    "401": (ErrorKind.AUTH, failed("unexpected status 401 Unauthorized: bad, url: http://x")),
    "403": (ErrorKind.AUTH, failed("unexpected status 403 Forbidden: no")),
    "429": (
        ErrorKind.RATE_LIMIT,
        failed("exceeded retry limit, last status: 429 Too Many Requests"),
    ),
    "usage limit": (ErrorKind.RATE_LIMIT, failed("You've hit your usage limit. Try again later.")),
    "quota": (ErrorKind.BILLING, failed("Quota exceeded. Check your plan and billing details.")),
    "overloaded": (
        ErrorKind.OVERLOADED,
        failed("Selected model is at capacity. Please try a different model."),
    ),
    "500": (ErrorKind.OVERLOADED, failed("We're currently experiencing high demand, which may")),
    "dropped": (ErrorKind.OVERLOADED, failed("stream disconnected before completion: closed")),
    "context": (
        ErrorKind.CONTEXT_FULL,
        failed("Codex ran out of room in the model's context window. Start a new thread"),
    ),
    "anything else": (ErrorKind.CRASHED, failed("the model said something odd")),
    "failed but exit 0": (ErrorKind.CRASHED, {**failed("something odd"), "code": 0}),
    "unknown session": (
        ErrorKind.SESSION_UNKNOWN,
        {
            "stderr": "Error: thread/resume: thread/resume failed: no rollout found for thread id "
            f"{THREAD} (code -32600)\n\nStack backtrace:\n   0: <unknown>\n   1: <unknown>\n"
        },
    ),
    "session in use": (
        ErrorKind.SESSION_IN_USE,
        {"stderr": f"Error: thread {THREAD} already has an active writer\n"},
    ),
    "not a repository": (
        ErrorKind.PERMISSION_DENIED,
        {"stderr": "Not inside a trusted directory and --skip-git-repo-check was not specified.\n"},
    ),
    "no key": (
        ErrorKind.AUTH,
        {"lines": [STARTED, event("error", message="Missing environment variable: `KEY`.")]},
    ),
    "a backtrace": (
        ErrorKind.CRASHED,
        {"stderr": "Error: the config is odd\n\nStack backtrace:\n   0: <unknown>\n"},
    ),
}


class TestCodexExecAdapter(StreamContract):
    FAILURES = EXEC_FAILURES

    @pytest.fixture
    def stage(self, tmp_path):
        def make(*acts):
            words = lines_of([("say", None), *acts], lambda said: text(said) if said else STARTED)
            end = f"printf '%s\\n' {shlex.quote(completed())}\n"
            keep = f"cat > {shlex.quote(str(tmp_path / 'prompt'))}\n"
            made = program(tmp_path / "codex", f"{keep}{words}{end}")
            return AgentSpec(name="codex", adapter="codex-exec", command=str(made))

        return make

    @pytest.fixture
    def order(self, order):
        """Codex names its sessions itself; this one is named already."""
        return replace(order, session=THREAD)

    @pytest.fixture
    def heard_prompt(self, tmp_path):
        return lambda: (tmp_path / "prompt").read_bytes().decode()

    @pytest.fixture
    def fake(self, exec_fake):
        return lambda lines=(), **played: exec_fake(*lines, **played)


@pytest.fixture
def exec_fake(tmp_path):
    """`codex exec` that replays events."""

    def make(*lines, **played):
        made = replaying(tmp_path / "fake", "codex", *lines, **played)
        return adapter_for(AgentSpec(name="codex", adapter="codex-exec", command=str(made)))

    return make


def test_the_session_is_the_one_that_codex_names(exec_fake, order, tmp_path):
    outcome = run_step(exec_fake(STARTED, text("hi"), completed()), order)
    assert outcome.session == THREAD
    assert "resume" not in told(tmp_path / "fake")
    run_step(exec_fake(STARTED, completed()), replace(order, session=THREAD, resume=True))
    assert told(tmp_path / "fake")[-3:] == ["resume", THREAD, "-"]


def test_a_session_whose_first_step_was_cut_short_is_found_again(exec_fake, order, tmp_path):
    run_step(exec_fake(STARTED, code=137), order)
    run_step(exec_fake(STARTED, completed()), replace(order, resume=True))
    assert told(tmp_path / "fake")[-3:] == ["resume", THREAD, "-"]


@pytest.mark.parametrize("name", ["--last", "../../x", "", 5, None, "a b", "x" * 200])
def test_a_name_that_could_be_an_option_or_a_path_is_no_session(exec_fake, order, name):
    outcome = run_step(exec_fake(event("thread.started", thread_id=name), completed()), order)
    assert outcome.session == order.session


def test_what_a_thread_used_is_told_since_the_step_before(exec_fake, order):
    first = run_step(exec_fake(STARTED, completed(100, 10)), order)
    assert first.usage == Usage(input_tokens=100, output_tokens=10, cost_usd=None)
    again = replace(order, session=first.session, resume=True)
    second = run_step(exec_fake(STARTED, completed(300, 30)), again)
    assert second.usage == Usage(input_tokens=200, output_tokens=20, cost_usd=None)
    anew = run_step(exec_fake(STARTED, completed(50, 5)), again)
    assert anew.usage == Usage(input_tokens=50, output_tokens=5, cost_usd=None)


def test_what_a_killed_step_used_is_paid_with_the_next(exec_fake, order):
    run_step(exec_fake(STARTED, completed(100, 10)), order)
    again = replace(order, session=THREAD, resume=True)
    assert run_step(exec_fake(STARTED, code=137), again).usage == Usage(cost_usd=None)
    assert run_step(exec_fake(STARTED, completed(500, 50)), again).usage.input_tokens == 400


def test_a_trouble_it_got_over_is_none(exec_fake, order):
    lines = [
        STARTED,
        event("item.completed", item={"type": "error", "message": "Model metadata not found"}),
        event("error", message="Reconnecting... 1/1"),
        text("DONE"),
        completed(),
    ]
    outcome = run_step(exec_fake(*lines), order)
    assert (outcome.error, outcome.done, outcome.text) == (None, True, "DONE\n")


def test_what_it_is_doing_is_told_as_it_does_it(exec_fake, order):
    lines = []
    events = [
        event("item.started", item={"type": "command_execution", "command": "pytest -q\nls"}),
        event("item.completed", item={"type": "command_execution", "command": "pytest -q\nls"}),
        event("item.started", item={"type": "mcp_tool_call", "server": "crew", "tool": "ask"}),
        event("item.completed", item={"type": "file_change", "changes": [{"path": "a.py"}]}),
        event("item.completed", item={"type": "file_change", "changes": ["odd"]}),
        event("item.started", item={"type": "web_search", "query": "how"}),
    ]
    adapter = exec_fake(STARTED, *events, completed())
    run_step(adapter, order, Watch(started=SILENT.started, doing=lines.append))
    assert lines == ["pytest -q", "crew: ask", "edits a.py", "searches how"]


SPEC = AgentSpec(
    name="codex",
    adapter="codex",
    model='o"3',
    system_prompt="be\nkind",
    args=("-c", "sandbox_mode=read-only"),
    network=False,
)


def test_everything_is_said_again_each_time_and_the_agents_own_words_come_last(order, tmp_path):
    (order.worktree / ".git").write_text(f"gitdir: {tmp_path}/g/worktrees/w\n")
    env = {
        "CREW_GIT_DIR": f"{tmp_path}/g",
        "CREW_MCP_URL": "http://127.0.0.1:1/mcp",
        "CREW_TOKEN": "secret",
    }
    flags = codex_flags(SPEC, replace(order, env=env))
    roots = [f"{tmp_path}/g/{name}" for name in ("worktrees/w", "objects", "refs", "logs")]
    assert flags == (
        *("-c", "analytics.enabled=false"),
        *("-c", f'projects={{"{order.worktree}"={{"trust_level"="untrusted"}}}}'),
        *("-c", 'sandbox_mode="workspace-write"'),
        *("-c", f"sandbox_workspace_write.writable_roots={json.dumps(roots).replace(', ', ',')}"),
        *("-c", "sandbox_workspace_write.network_access=false"),
        *("-c", 'model="o\\"3"'),
        *("-c", 'mcp_servers.crew.url="http://127.0.0.1:1/mcp"'),
        *("-c", 'mcp_servers.crew.bearer_token_env_var="CREW_TOKEN"'),
        *("-c", 'mcp_servers.crew.default_tools_approval_mode="approve"'),
        *("--disable", "plugins", "--disable", "apps"),
        *("-c", "sandbox_mode=read-only"),
    )


def test_a_checkout_that_is_no_worktree_opens_nothing_of_git(order):
    (order.worktree / ".git").mkdir()
    flags = codex_flags(SPEC, replace(order, env={"CREW_GIT_DIR": "/g"}))
    assert "sandbox_workspace_write.writable_roots=[]" in flags


def test_values_for_its_command_line_are_toml():
    tomllib = pytest.importorskip("tomllib")
    for value in ['a"b\\c\n\t\x7fü\U0001f600', True, 5, ["a", "b'"]]:
        assert tomllib.loads(f"x={toml(value)}")["x"] == value
