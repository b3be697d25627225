"""Claude Code's words, errors and costs are understood as its stream-json tells them."""

import json
import shlex
from dataclasses import replace

import pytest

from agents.contract import SILENT, AdapterContract, order, run_step, shell_lines
from crew.agents.adapter import AgentSpec, Watch, adapter_for
from crew.agents.claude.claude import claude_argv, session_id
from crew.domain.rows.step import ErrorKind, Usage

__all__ = ["order"]

SESSION = "6a2f41a3-c54c-4e5b-a1f0-5b8a2f6fbb10"


def event(**fields):
    return json.dumps({"session_id": SESSION, **fields})


def message(*content, number=1, **fields):
    usage = {"input_tokens": 3, "cache_read_input_tokens": 90, "output_tokens": 5}
    body = {"id": f"msg_{number}", "content": list(content), "usage": usage}
    return event(type="assistant", message=body, parent_tool_use_id=None, **fields)


def text(words, **fields):
    return message({"type": "text", "text": words}, **fields)


def result(**fields):
    usual = {
        "subtype": "success",
        "is_error": False,
        "result": "ok",
        "total_cost_usd": 0.0014,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 7},
        "terminal_reason": "completed",
    }
    return event(type="result", **{**usual, **fields})


def used(tokens, cost_usd):
    return {"opus": {"inputTokens": tokens, "outputTokens": 1, "costUSD": cost_usd}}


@pytest.fixture
def fake(tmp_path):
    """A program called claude that plays events; it keeps what it was told beside itself."""

    def make(*lines, code=0, stderr="", script=""):
        folder = tmp_path / "fake"
        folder.mkdir(exist_ok=True)
        (folder / "events").write_text("".join(f"{line}\n" for line in lines))
        (folder / "stderr").write_text(stderr)
        here = shlex.quote(str(folder))
        program = folder / "claude"
        program.write_text(
            f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {here}/argv\nhead -n 1 > {here}/stdin\n"
            f"{script}\ncat {here}/events\ncat {here}/stderr >&2\nexit {code}\n"
        )
        program.chmod(0o755)
        return adapter_for(AgentSpec(name="claude", adapter="claude", command=str(program)))

    return make


@pytest.fixture
def stage(tmp_path):
    def make(*acts):
        program = tmp_path / "claude"
        init = event(type="system", subtype="init", model="opus", tools=[])
        script = shell_lines([("say", None), *acts], lambda words: text(words) if words else init)
        end = f"printf '%s\\n' {shlex.quote(result())}\n"
        program.write_text(f"#!/bin/sh\nhead -n 1 >/dev/null\n{script}{end}")
        program.chmod(0o755)
        return AgentSpec(name="claude", adapter="claude", command=str(program))

    return make


class TestClaudeAdapter(AdapterContract):
    pass


def error_result(words="", **fields):
    return result(**{"is_error": True, "result": words, "terminal_reason": "api_error", **fields})


def failed_message(name):
    return text("API Error", error=name)


ROWS = {
    "401": (
        ErrorKind.AUTH,
        [
            failed_message("authentication_failed"),
            error_result(
                "Invalid API key · Fix external API key",
                api_error_status=401,
                api_error_type="authentication_error",
            ),
        ],
    ),
    "403": (
        ErrorKind.AUTH,
        [
            failed_message("authentication_failed"),
            error_result(
                "Failed to authenticate. API Error: 403 forbidden",
                api_error_status=403,
                api_error_type="permission_error",
            ),
        ],
    ),
    "400 too long": (
        ErrorKind.CONTEXT_FULL,
        [
            failed_message("invalid_request"),
            error_result(
                "Prompt is too long · ...", terminal_reason="prompt_too_long", api_error_status=400
            ),
        ],
    ),
    "400 credit": (
        ErrorKind.BILLING,
        [
            failed_message("billing_error"),
            error_result("Credit balance is too low", api_error_status=400),
        ],
    ),
    "404 model": (
        ErrorKind.UNKNOWN_MODEL,
        [
            failed_message("model_not_found"),
            error_result("There's an issue with the selected model (x)", api_error_status=404),
        ],
    ),
    "429": (
        ErrorKind.RATE_LIMIT,
        [
            failed_message("rate_limit"),
            error_result(
                "API Error: Request rejected (429) · ...",
                api_error_status=429,
                api_error_type="rate_limit_error",
            ),
        ],
    ),
    "529": (
        ErrorKind.OVERLOADED,
        [
            failed_message("server_error"),
            error_result(
                "API Error: Repeated 529 Overloaded errors",
                api_error_status=529,
                api_error_type="overloaded_error",
            ),
        ],
    ),
    "500": (
        ErrorKind.OVERLOADED,
        [
            failed_message("server_error"),
            error_result("API Error: 500 ...", api_error_status=500, api_error_type="api_error"),
        ],
    ),
    "refused": (
        ErrorKind.OVERLOADED,
        [
            failed_message("server_error"),
            error_result(
                "API Error: Connection refused (ECONNREFUSED)",
                api_error_status=None,
                api_error="connection_failed",
            ),
        ],
    ),
    "malformed": (
        ErrorKind.CRASHED,
        [
            failed_message("unknown"),
            error_result(
                "API Error: API returned an empty or malformed response (HTTP 200)",
                api_error_status=None,
            ),
        ],
    ),
    "nothing but noise": (
        ErrorKind.CRASHED,
        [
            result(
                subtype="error_during_execution",
                is_error=True,
                result=None,
                errors=["[ede_diagnostic] ..."],
            )
        ],
    ),
    "max_tokens": (
        ErrorKind.CRASHED,
        [
            failed_message("max_output_tokens"),
            error_result(
                "API Error: Claude's response exceeded the 128000 output token maximum",
                api_error="max_output_tokens",
            ),
        ],
    ),
    "max turns": (
        ErrorKind.CRASHED,
        [
            result(
                subtype="error_max_turns",
                is_error=True,
                result=None,
                errors=["Reached maximum number of turns (1)"],
                terminal_reason="max_turns",
            )
        ],
    ),
    "no key": (ErrorKind.AUTH, [error_result("Not logged in · Please run /login")]),
    "unknown session": (
        ErrorKind.SESSION_UNKNOWN,
        [
            result(
                subtype="error_during_execution",
                is_error=True,
                result=None,
                errors=[f"No conversation found with session ID: {SESSION}"],
            )
        ],
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_failure_has_its_kind_and_a_sentence(fake, order, row):
    kind, lines = ROWS[row]
    error = run_step(fake(*lines, code=1), order).error
    assert error.kind is kind
    assert len(error.message) > 10
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        (f"Error: Session ID {SESSION} is already in use.\n", ErrorKind.SESSION_IN_USE),
        (f"No conversation found with session ID: {SESSION}\n", ErrorKind.SESSION_UNKNOWN),
        (
            "--dangerously-skip-permissions cannot be used with root/sudo privileges\n",
            ErrorKind.PERMISSION_DENIED,
        ),
        ("Error: Invalid session ID. Must be a valid UUID.\n", ErrorKind.CRASHED),
    ],
)
def test_what_it_says_on_stderr_before_any_event_is_understood(fake, order, stderr, kind):
    error = run_step(fake(code=1, stderr=stderr), order).error
    assert error.kind is kind
    assert stderr.strip() in error.message


def test_an_api_failure_called_success_is_a_failure(fake, order):
    outcome = run_step(fake(text("DONE"), error_result("API Error", subtype="success")), order)
    assert outcome.error.kind is ErrorKind.CRASHED


def test_exit_0_without_a_result_is_a_crash(fake, order):
    error = run_step(fake(text("DONE")), order).error
    assert error.kind is ErrorKind.CRASHED
    assert "without a result" in error.message


def test_an_interrupted_run_is_no_success_although_it_exits_0(fake, order):
    line = result(subtype="error_during_execution", terminal_reason="aborted_tools")
    assert run_step(fake(line), order).error.kind is ErrorKind.CRASHED


def test_words_of_the_agent_about_errors_are_not_errors(fake, order):
    words = "Fixed: Credit balance is too low, session is already in use, Not logged in"
    outcome = run_step(fake(text(words), result(result=words)), order)
    assert outcome.error is None


def test_a_denied_tool_does_not_fail_the_step(fake, order):
    line = result(permission_denials=[{"tool_name": "Write"}])
    assert run_step(fake(text("could not write"), line), order).error is None


def limit(status):
    told = {"status": status, "resetsAt": 1893456000, "rateLimitType": "five_hour"}
    return event(type="rate_limit_event", rate_limit_info=told)


@pytest.mark.parametrize(
    "lines",
    [
        [error_result("Claude AI usage limit reached|1893456000", api_error_status=429)],
        [
            limit("rejected"),
            failed_message("rate_limit"),
            error_result(
                "You've hit your limit · resets 12am (UTC)",
                api_error_status=429,
                api_error_type="rate_limit_error",
                api_error="usage_limit_reached",
            ),
        ],
    ],
)
def test_the_end_of_a_rate_limit_is_told_if_known(fake, order, lines):
    assert run_step(fake(*lines, code=1), order).error.reset_at == 1893456000.0


def test_the_end_of_a_window_that_is_not_used_up_is_not_the_end_of_a_rate_limit(fake, order):
    lines = [limit("allowed"), error_result("API Error: 429", api_error_status=429)]
    error = run_step(fake(*lines, code=1), order).error
    assert (error.kind, error.reset_at) == (ErrorKind.RATE_LIMIT, None)


def test_a_missing_program_is_named(order):
    spec = AgentSpec(name="claude", adapter="claude", command="no-such-claude")
    error = run_step(adapter_for(spec), order).error
    assert error.kind is ErrorKind.NOT_INSTALLED
    assert "no-such-claude" in error.message


def test_tokens_and_cost_are_those_of_this_run(fake, order):
    first = fake(text("hi"), result(total_cost_usd=0.0014))
    assert run_step(first, order).usage == Usage(
        input_tokens=110, output_tokens=7, cost_usd=pytest.approx(0.0014)
    )
    again = replace(order, resume=True)
    second = fake(text("hi"), result(total_cost_usd=0.0034))
    assert run_step(second, again).usage.cost_usd == pytest.approx(0.002)
    anew = fake(text("hi"), result(total_cost_usd=0.0010))
    assert run_step(anew, again).usage.cost_usd == pytest.approx(0.0010)


def test_the_cost_of_a_session_begun_elsewhere_is_unknown_at_first(fake, order):
    again = replace(order, resume=True)
    assert run_step(fake(result(total_cost_usd=5.0)), again).usage.cost_usd is None
    assert run_step(fake(result(total_cost_usd=5.5)), again).usage.cost_usd == pytest.approx(0.5)


def test_of_several_results_the_last_decides_and_all_are_paid(fake, order):
    outcome = run_step(
        fake(
            text("waiting", number=1),
            error_result("API Error", model_usage_since_last_result=used(100, 0.25)),
            event(type="system", subtype="init"),
            text("DONE", number=2),
            result(total_cost_usd=9.0, model_usage_since_last_result=used(50, 0.5)),
        ),
        order,
    )
    assert outcome.error is None
    assert outcome.done
    assert outcome.usage == Usage(input_tokens=150, output_tokens=2, cost_usd=0.75)


@pytest.mark.parametrize("seen", [[], [text("more", number=2)]])
def test_a_turn_after_a_result_that_was_cut_off_makes_the_cost_unknown(fake, order, seen):
    first = result(total_cost_usd=0.25, model_usage_since_last_result=used(100, 0.25))
    lines = [text("waiting"), first, event(type="system", subtype="init"), *seen]
    usage = run_step(fake(*lines, code=137), order).usage
    assert usage.cost_usd is None
    assert (usage.input_tokens > 100) is bool(seen)


def test_each_result_tells_only_what_came_since_the_one_before(fake, order):
    lines = [result(total_cost_usd=0.25), result(total_cost_usd=0.75)]
    usage = run_step(fake(text("waiting"), *lines), order).usage
    assert usage == Usage(input_tokens=220, output_tokens=14, cost_usd=0.75)


def test_a_run_that_died_shows_the_tokens_it_was_seen_to_use(fake, order):
    lines = [text("a", number=1), text("b", number=1), text("c", number=2)]
    outcome = run_step(fake(*lines, code=137), order)
    assert outcome.usage == Usage(input_tokens=186, output_tokens=10, cost_usd=None)


def test_only_the_agents_own_words_count(fake, order):
    helper = json.loads(text("DONE"))
    helper["parent_tool_use_id"] = "toolu_1"
    outcome = run_step(fake(json.dumps(helper), text("still at it"), result()), order)
    assert not outcome.done
    assert outcome.text == "still at it\n"


def test_two_messages_do_not_make_one_word(fake, order):
    assert not run_step(fake(text("DO"), text("NE"), result(result="NE")), order).done


def test_what_it_is_doing_is_its_last_tool_or_words(fake, order):
    lines = []

    def doing(line):
        lines.append(line)
        (order.worktree / "heard").touch()

    tool = {"type": "tool_use", "name": "Bash", "input": {"command": "pytest -q\nls"}}
    until_heard = "until [ -e heard ]; do sleep 0.02; done"
    first_words = f"printf '%s\\n' {shlex.quote(text('hm'))}; {until_heard}"
    adapter = fake(message(tool), result(), script=first_words)
    run_step(adapter, order, Watch(started=SILENT.started, doing=doing))
    assert lines == ["hm", "Bash: pytest -q"]


@pytest.mark.parametrize(
    "noise",
    [
        "not json",
        "[]",
        "null",
        '{"type":"assistant"}',
        '{"type":"assistant","message":{"content":"text","usage":5,"id":1}}',
        '{"type":"result"',
        '{"type":"new_thing","message":1}',
    ],
)
def test_lines_it_does_not_know_do_no_harm(fake, order, noise):
    outcome = run_step(fake(noise, text("DONE"), result()), order)
    assert (outcome.error, outcome.done) == (None, True)


def test_the_flags_are_those_that_keep_the_worktrees_settings_off(fake, order, tmp_path):
    prompt = "do $(it)\n" * 30_000
    run_step(fake(text("x"), result()), replace(order, prompt=prompt))
    argv = (tmp_path / "fake" / "argv").read_text().splitlines()
    assert argv == [
        *("-p", "--output-format", "stream-json", "--verbose"),
        *("--input-format", "stream-json", "--replay-user-messages"),
        *("--permission-prompt-tool", "stdio", "--session-id", SESSION),
        *("--setting-sources", "user", "--strict-mcp-config"),
        *("--add-dir", str(order.worktree)),
        *("--permission-mode", "acceptEdits", "--allowedTools", "Bash"),
    ]
    told = json.loads((tmp_path / "fake" / "stdin").read_text())
    assert told["message"]["content"] == [{"type": "text", "text": prompt}]


def test_a_session_is_resumed_with_everything_said_again(order):
    spec = AgentSpec(
        name="claude",
        adapter="claude",
        model="opus",
        system_prompt="be kind",
        args=("--permission-mode=plan", "--allowedTools", "Read"),
    )
    env = {"CREW_MCP_URL": "http://127.0.0.1:1/mcp", "CREW_TOKEN": "secret"}
    argv = claude_argv(spec, replace(order, resume=True, env=env))
    joined = " ".join(argv)
    assert f"--resume {SESSION}" in joined
    assert "--session-id" not in joined
    assert "--model opus --append-system-prompt be kind" in joined
    assert joined.endswith("--permission-mode=plan --allowedTools Read")
    assert "acceptEdits" not in joined
    assert "secret" not in joined
    config = json.loads(argv[argv.index("--mcp-config") + 1])
    assert config["mcpServers"]["crew"]["url"] == "http://127.0.0.1:1/mcp"


def test_any_session_name_becomes_a_uuid_and_always_the_same():
    assert session_id(SESSION) == SESSION
    assert session_id("run 7") == session_id("run 7") != session_id("run 8")
    assert len(session_id("run 7")) == 36
