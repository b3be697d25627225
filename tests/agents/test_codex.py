"""Codex is understood both ways it can be driven, and resumed with everything said again."""

import asyncio
import json
import shlex
import sys
import tomllib
from dataclasses import replace

import pytest

from agents.contract import (
    SILENT,
    StreamContract,
    order,
    program,
    replaying,
    run_and_tell,
    run_step,
    say,
    shell,
    told,
)
from agents.contract import shell_lines as lines_of
from crew.agents.adapter import (
    AgentSpec,
    Controls,
    Interrupt,
    Permission,
    Say,
    Watch,
    adapter_for,
)
from crew.agents.codex.codex import is_for_app_server
from crew.agents.codex.codex_flags import codex_flags, toml
from crew.agents.codex.codex_turn import AppTurn
from crew.agents.event_stream import AgentMessages
from crew.domain.kernel.prices import ANY_MODEL, Price
from crew.domain.rows.step import ErrorKind, Usage

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
        *("-c", "allow_login_shell=false"),
        *("-c", f'projects={{"{order.worktree}"={{"trust_level"="untrusted"}}}}'),
        *("-c", 'approval_policy="never"'),
        *("-c", 'sandbox_mode="workspace-write"'),
        *("-c", f"sandbox_workspace_write.writable_roots={json.dumps(roots).replace(', ', ',')}"),
        *("-c", "sandbox_workspace_write.network_access=false"),
        *("-c", 'model="o\\"3"'),
        *("-c", 'mcp_servers.crew.url="http://127.0.0.1:1/mcp"'),
        *("-c", 'mcp_servers.crew.bearer_token_env_var="CREW_TOKEN"'),
        *("-c", 'mcp_servers.crew.default_tools_approval_mode="approve"'),
        *("-c", "mcp_servers.crew.startup_timeout_sec=60"),
        *("--disable", "plugins", "--disable", "apps"),
        *("-c", "sandbox_mode=read-only"),
    )


def test_a_checkout_that_is_no_worktree_opens_nothing_of_git(order):
    (order.worktree / ".git").mkdir()
    flags = codex_flags(SPEC, replace(order, env={"CREW_GIT_DIR": "/g"}))
    assert "sandbox_workspace_write.writable_roots=[]" in flags


def test_values_for_its_command_line_are_toml():
    for value in ['a"b\\c\n\t\x7fü\U0001f600', True, 5, ["a", "b'"]]:
        assert tomllib.loads(f"x={toml(value)}")["x"] == value


APP_SERVER = """
import json, os, subprocess, sys
plan = json.load(open(os.path.join(os.path.dirname(__file__), "plan")))
here = os.path.dirname(os.path.abspath(__file__))
THREAD, TURN = plan["thread"], "turn-1"

def tell(**message):
    sys.stdout.write(json.dumps(message) + "\\n")
    sys.stdout.flush()

def note(method, **params):
    tell(method=method, params={"threadId": THREAD, "turnId": TURN, **params})

def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    with open(here + "/heard", "a") as file:
        file.write(line)
    return json.loads(line)

def until(method):
    while True:
        message = hear()
        if message.get("method") != method and message.get("id") != method:
            continue
        if method in plan["refuse"]:
            tell(id=message["id"], error={"code": -32600, "message": plan["refuse"][method]})
        return message

def item(kind, **fields):
    return {"id": "i", "type": kind, **fields}

def perform(kind, value):
    if kind == "say":
        note("item/started", item=item("agentMessage", text=""))
        note("item/completed", item=item("agentMessage", text=value))
    elif kind == "shell":
        sys.stdout.flush()
        subprocess.run(value, shell=True)
    elif kind == "exit":
        os._exit(value)
    elif kind == "tell":
        tell(**value)
    elif kind == "steered":
        message = until("turn/steer")
        tell(id=message["id"], result={"turnId": TURN})
        client = message["params"]["clientUserMessageId"]
        note("item/started", item=item("userMessage", clientId=client))
    elif kind == "refuses":
        until(value)
    elif kind == "interrupted":
        message = until("turn/interrupt")
        tell(id=message["id"], result={})
        note("turn/completed", turn={"id": TURN, "status": "interrupted", "error": None})
        rest()
    elif kind == "ask":
        tell(id="q1", method=value["method"], params={"threadId": THREAD, **value["params"]})
        until("q1")

def rest():
    while True:
        hear()

if sys.argv[1] != "app-server":
    sys.exit(99)
with open(here + "/argv", "w") as file:
    file.write("\\n".join(sys.argv[1:]))
tell(id=until("initialize")["id"], result={"userAgent": "x"})
until("initialized")
message = hear()
if message["method"] in plan["refuse"]:
    tell(id=message["id"], error={"code": -32600, "message": plan["refuse"][message["method"]]})
    rest()
if "threadId" in message["params"]:
    note("thread/tokenUsage/updated", tokenUsage={"total": {"inputTokens": 1, "outputTokens": 1}})
tell(id=message["id"], result={"thread": {"id": THREAD}})
message = until("turn/start")
tell(id=message["id"], result={"turn": {"id": TURN, "status": "inProgress"}})
note("turn/started", turn={"id": TURN})
for kind, value in plan["acts"]:
    perform(kind, value)
note("thread/tokenUsage/updated", tokenUsage={"total": plan["total"]})
status = "failed" if plan["error"] else "completed"
note("turn/completed", turn={"id": TURN, "status": status, "error": plan["error"]})
rest()
"""


def app_server(folder, *acts, thread=THREAD, error=None, refuse=(), total=(100, 10)):
    """A program that speaks as `codex app-server` does, for one turn of these acts."""
    folder.mkdir(exist_ok=True)
    plan = {
        "acts": acts,
        "thread": thread,
        "error": error,
        "refuse": dict(refuse),
        "total": {"inputTokens": total[0], "outputTokens": total[1]},
    }
    (folder / "plan").write_text(json.dumps(plan))
    made = program(folder / "codex", APP_SERVER, interpreter=f"{sys.executable} -ISu")
    return AgentSpec(name="codex", adapter="codex", command=str(made))


@pytest.fixture
def app(tmp_path):
    return lambda *acts, **plan: adapter_for(app_server(tmp_path / "app", *acts, **plan))


@pytest.fixture
def heard(tmp_path):
    """The messages with this method that the program has got."""

    def heard(method):
        lines = (tmp_path / "app" / "heard").read_text().splitlines()
        return [one["params"] for one in map(json.loads, lines) if one.get("method") == method]

    return heard


def typed(info, words="something went wrong", **details):
    return {"error": {"message": words, "codexErrorInfo": info, **details}}


APP_FAILURES = {
    "context": (ErrorKind.CONTEXT_FULL, typed("contextWindowExceeded")),
    "usage limit": (ErrorKind.RATE_LIMIT, typed("usageLimitExceeded")),
    "rate limit": (ErrorKind.RATE_LIMIT, typed("rateLimitExceeded")),
    "quota": (
        ErrorKind.BILLING,
        typed("usageLimitExceeded", "Quota exceeded. Check your plan and billing details."),
    ),
    "budget": (ErrorKind.BILLING, typed("sessionBudgetExceeded")),
    "overloaded": (ErrorKind.OVERLOADED, typed("serverOverloaded")),
    "500": (ErrorKind.OVERLOADED, typed("internalServerError")),
    "unauthorized": (ErrorKind.AUTH, typed("unauthorized")),
    "401": (ErrorKind.AUTH, typed({"httpConnectionFailed": {"httpStatusCode": 401}})),
    "403": (ErrorKind.AUTH, typed({"httpConnectionFailed": {"httpStatusCode": 403}})),
    "refused": (
        ErrorKind.OVERLOADED,
        typed({"httpConnectionFailed": {"httpStatusCode": None}}),
    ),
    "429": (
        ErrorKind.RATE_LIMIT,
        typed({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}),
    ),
    "dropped": (
        ErrorKind.OVERLOADED,
        typed({"responseStreamDisconnected": {"httpStatusCode": None}}),
    ),
    "denials": (ErrorKind.PERMISSION_DENIED, typed("tooManyDenials")),
    "bad request": (ErrorKind.CRASHED, typed("badRequest")),
    "in its details": (
        ErrorKind.AUTH,
        typed("other", additionalDetails="unexpected status 401 Unauthorized"),
    ),
    "an odd one": (ErrorKind.CRASHED, typed(["new"])),
    "no rollout": (
        ErrorKind.SESSION_UNKNOWN,
        {"refuse": {"thread/start": f"no rollout found for thread id {THREAD}"}},
    ),
    "in use": (
        ErrorKind.SESSION_IN_USE,
        {"refuse": {"thread/start": "thread already has an active writer"}},
    ),
    "no turn": (ErrorKind.CRASHED, {"refuse": {"turn/start": ""}}),
}


class TestCodexAppServerAdapter(StreamContract):
    FAILURES = APP_FAILURES

    @pytest.fixture
    def stage(self, tmp_path):
        return lambda *acts: app_server(tmp_path / "app", *acts)

    @pytest.fixture
    def order(self, order):
        return replace(order, session=THREAD)

    @pytest.fixture
    def heard_prompt(self, heard):
        return lambda: heard("turn/start")[0]["input"][0]["text"]

    @pytest.fixture
    def fake(self, app):
        return lambda code, **plan: app(**plan)


def test_a_thread_is_resumed_with_everything_said_again(app, order, heard):
    outcome = run_step(app(say("hi")), order)
    assert outcome.session == THREAD
    assert heard("thread/start") == [
        {
            "cwd": str(order.worktree),
            "sandbox": "workspace-write",
            "approvalPolicy": "never",
            "approvalsReviewer": "user",
        }
    ]
    run_step(app(say("hi")), replace(order, session=THREAD, resume=True))
    again = heard("thread/resume")[0]
    assert again["threadId"] == THREAD
    assert (again["sandbox"], again["approvalPolicy"]) == ("workspace-write", "never")


def test_a_thread_whose_first_step_was_cut_short_is_found_again(app, order, heard):
    run_step(app(("exit", 137)), order)
    run_step(app(), replace(order, resume=True))
    assert heard("thread/resume")[0]["threadId"] == THREAD


def test_the_agents_own_arguments_decide_on_the_sandbox(order, tmp_path, heard):
    spec = replace(app_server(tmp_path / "app"), args=("-c", 'sandbox_mode="read-only"'))
    run_step(adapter_for(replace(spec, system_prompt="be kind")), order)
    assert heard("thread/start")[0]["sandbox"] == "read-only"
    assert heard("thread/start")[0]["developerInstructions"] == "be kind"
    assert told(tmp_path / "app")[-2:] == ["-c", 'sandbox_mode="read-only"']


def test_usage_of_a_turn_is_told_since_the_turn_before(app, order):
    assert run_step(app(total=(100, 10)), order).usage.input_tokens == 100
    again = replace(order, session=THREAD, resume=True)
    assert run_step(app(total=(300, 30)), again).usage == Usage(
        input_tokens=200, output_tokens=20, cost_usd=None
    )


def test_words_are_steered_into_the_turn_and_known_to_be_heard(app, order, heard):
    taken = []
    watch = Watch(started=SILENT.started, doing=SILENT.doing, heard=taken.append)
    adapter = app(shell("echo > up"), ("steered", None), ("steered", None), say("DONE"))
    words = [Say(message="m-1", text="hurry"), Say(message="m-2", text="more")]
    outcome = run_and_tell(adapter, order, watch, when=order.worktree / "up", words=words)
    assert (outcome.error, outcome.done) == (None, True)
    assert taken == ["m-1", "m-2"]
    assert [one["input"][0]["text"] for one in heard("turn/steer")] == ["hurry", "more"]


def test_words_that_come_too_late_are_not_taken_for_heard(app, order):
    taken = []
    watch = Watch(started=SILENT.started, doing=SILENT.doing, heard=taken.append)
    refuse = {"turn/steer": "no active turn to steer"}
    adapter = app(shell("echo > up"), ("refuses", "turn/steer"), say("DONE"), refuse=refuse)
    words = [Say(message="m-1", text="hurry")]
    outcome = run_and_tell(adapter, order, watch, when=order.worktree / "up", words=words)
    assert (outcome.error, outcome.done, taken) == (None, True, [])


def test_words_that_come_before_the_turn_wait_for_it(app, order, heard):
    async def run():
        controls = Controls()
        controls.send(Say(message="m-1", text="hurry"))
        return await app(("steered", None), say("DONE")).run_step(order, SILENT, controls)

    assert asyncio.run(run()).done
    assert heard("turn/steer")[0]["expectedTurnId"] == "turn-1"


def test_an_interrupt_before_the_turn_starts_none(app, order, heard):
    async def run():
        controls = Controls()
        controls.send(Interrupt())
        return await app(say("DONE")).run_step(order, SILENT, controls)

    outcome = asyncio.run(run())
    assert (outcome.error, outcome.done) == (None, False)
    assert heard("turn/start") == []


def test_the_end_of_an_older_turn_is_not_the_end_of_this_one(app, order):
    older = {"threadId": THREAD, "turn": {"id": "turn-0", "status": "failed"}}
    adapter = app(("tell", {"method": "turn/completed", "params": older}), say("DONE"))
    outcome = run_step(adapter, order)
    assert (outcome.error, outcome.done) == (None, True)


def test_an_interrupt_ends_the_turn_and_is_no_error(app, order):
    adapter = app(say("DONE"), shell("echo > up"), ("interrupted", None))
    outcome = run_and_tell(
        adapter, order, SILENT, when=order.worktree / "up", words=[Interrupt(), Interrupt()]
    )
    assert (outcome.error, outcome.done, outcome.session) == (None, False, THREAD)


def test_a_turn_that_somebody_else_interrupted_is_a_crash(app, order):
    note = {"threadId": THREAD, "turn": {"id": "turn-1", "status": "interrupted"}}
    adapter = app(("tell", {"method": "turn/completed", "params": note}))
    assert run_step(adapter, order).error.kind is ErrorKind.CRASHED


APPROVALS = {
    "item/commandExecution/requestApproval": (
        {"command": "touch /x", "reason": "I need it"},
        Permission(tool="shell", detail="touch /x\nI need it"),
        ({"decision": "accept"}, {"decision": "decline"}),
    ),
    "item/fileChange/requestApproval": (
        {"grantRoot": "/x"},
        Permission(tool="edit", detail="/x"),
        ({"decision": "accept"}, {"decision": "decline"}),
    ),
    "item/permissions/requestApproval": (
        {"permissions": {"network": {"enabled": True}}},
        Permission(tool="more access", detail='{"network": {"enabled": true}}'),
        (
            {"permissions": {"network": {"enabled": True}}, "scope": "turn"},
            {"permissions": {}, "scope": "turn"},
        ),
    ),
    "mcpServer/elicitation/request": (
        {"message": "May it?"},
        Permission(tool="mcp", detail="May it?"),
        ({"action": "accept", "content": {}}, {"action": "decline", "content": None}),
    ),
}


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("method", APPROVALS)
def test_what_goes_beyond_the_sandbox_is_asked_of_a_person(app, order, tmp_path, method, allowed):
    params, wanted, answers = APPROVALS[method]
    questions = []

    async def asked(permission):
        questions.append(permission)
        return allowed

    watch = Watch(started=SILENT.started, doing=SILENT.doing, asked=asked)
    adapter = app(("ask", {"method": method, "params": params}), say("DONE"))
    assert run_step(adapter, order, watch).done
    assert questions == [wanted]
    lines = (tmp_path / "app" / "heard").read_text().splitlines()
    answer = next(one for one in map(json.loads, lines) if one.get("id") == "q1")
    assert answer["result"] == answers[0 if allowed else 1]
    assert '"approvalPolicy": "on-request"' in (tmp_path / "app" / "heard").read_text()


def test_where_nobody_can_be_asked_the_answer_is_no(app, order, tmp_path):
    question = {"method": "item/commandExecution/requestApproval", "params": {"command": "x"}}
    assert run_step(app(("ask", question), say("DONE")), order).done
    assert '{"decision": "decline"}' in (tmp_path / "app" / "heard").read_text()


def test_a_question_that_crew_does_not_know_is_refused_at_once(app, order, tmp_path):
    question = {"method": "attestation/generate", "params": {}}
    assert run_step(app(("ask", question), say("DONE")), order).done
    assert "-32601" in (tmp_path / "app" / "heard").read_text()


def test_a_question_that_is_withdrawn_is_not_waited_for(app, order):
    async def never(_permission):
        await asyncio.Event().wait()

    watch = Watch(started=SILENT.started, doing=SILENT.doing, asked=never)
    question = {
        "id": 5,
        "method": "item/fileChange/requestApproval",
        "params": {"threadId": THREAD},
    }
    resolved = {
        "method": "serverRequest/resolved",
        "params": {"threadId": THREAD, "requestId": 5},
    }
    acts = [("tell", question), ("tell", resolved), say("DONE")]
    assert run_step(app(*acts), order, watch).done


def test_a_helpers_words_are_not_the_agents(app, order):
    item = {"type": "agentMessage", "text": "DONE"}
    other = {"method": "item/completed", "params": {"threadId": "another", "item": item}}
    ended = {
        "method": "turn/completed",
        "params": {"threadId": "another", "turn": {"id": "t", "status": "completed"}},
    }
    outcome = run_step(app(("tell", other), ("tell", ended), say("going on")), order)
    assert (outcome.error, outcome.done, outcome.text) == (None, False, "going on\n")


def with_prices(adapter):
    prices = {ANY_MODEL: Price(input=1.0, cached_input=0.5, output=2.0)}
    return adapter_for(replace(adapter.spec, prices=prices))


def of_thread(thread, method, **params):
    return ("tell", {"method": method, "params": {"threadId": thread, **params}})


def used_by(thread, total, last=100_000):
    counts = {"total": {"inputTokens": total}, "last": {"inputTokens": last}}
    return of_thread(thread, "thread/tokenUsage/updated", tokenUsage=counts)


def turn_of(thread, status):
    return of_thread(thread, "turn/completed", turn={"id": "turn-1", "status": status})


SPAWNED = of_thread(
    THREAD,
    "item/completed",
    item={"type": "collabAgentToolCall", "tool": "spawnAgent", "receiverThreadIds": ["h", 5]},
)
OWN = used_by(THREAD, 100_000)
HELPED = [used_by("h", 600_000), used_by("h", 700_000), used_by("h", 0, last=0)]
"""A helper that had used 500,000 tokens before, and uses twice 100,000 now."""


@pytest.mark.parametrize(
    ("acts", "tokens", "cost"),
    [
        ([OWN], 100_000, 0.1),
        ([SPAWNED, *HELPED, turn_of("h", "completed"), OWN], 300_000, 0.3),
        ([SPAWNED, *HELPED, OWN], 300_000, None),
        ([SPAWNED, *HELPED, turn_of("h", "interrupted"), OWN], 300_000, None),
        ([SPAWNED, OWN], 100_000, None),
        ([OWN, ("exit", 137)], 100_000, None),
        ([OWN, turn_of(THREAD, "interrupted")], 100_000, None),
    ],
)
def test_the_cost_is_that_of_its_thread_and_its_helpers_or_unknown(app, order, acts, tokens, cost):
    adapter = app(*acts, say("DONE"), total=(100_000, 0))
    usage = run_step(with_prices(adapter), order).usage
    assert (usage.input_tokens, usage.cost_usd) == (tokens, cost and pytest.approx(cost))


@pytest.mark.parametrize(("tool", "cost"), [("mcp_tool_call", 0.0001), ("collab_tool_call", None)])
def test_the_cost_of_helpers_is_unknown_where_no_event_has_it(exec_fake, order, tool, cost):
    called = event("item.completed", item={"type": tool, "tool": "spawn_agent"})
    usage = run_step(with_prices(exec_fake(STARTED, called, completed(100, 10))), order).usage
    assert usage.cost_usd == (cost and pytest.approx(cost))


def test_the_end_of_a_used_up_window_is_told(app, order):
    window = {"usedPercent": 100, "resetsAt": 1893456000}
    later = {"usedPercent": 20, "resetsAt": 1893999999}
    limits = {"rateLimits": {"primary": window, "secondary": later}}
    note = ("tell", {"method": "account/rateLimits/updated", "params": limits})
    error = run_step(app(note, **typed("usageLimitExceeded")), order).error
    assert error.reset_at == 1893456000.0
    assert run_step(app(note, **typed("serverOverloaded")), order).error.reset_at is None


def test_without_an_app_server_it_is_driven_by_exec(tmp_path, order):
    made = replaying(tmp_path / "fake", "codex", STARTED, text("DONE"), completed())
    script = made.read_text().replace("\n", '\n[ "$1" = app-server ] && exit 2\n', 1)
    made.write_text(script)
    spec = AgentSpec(name="codex", adapter="codex", command=str(made))
    outcome = run_step(adapter_for(spec), order)
    assert (outcome.error, outcome.done, outcome.session) == (None, True, THREAD)
    assert told(tmp_path / "fake")[:2] == ["exec", "--json"]


def test_arguments_that_only_exec_knows_choose_it():
    assert is_for_app_server(("-c", "a=b", "--enable", "x", "--config=a=b", "--disable=x"))
    assert not is_for_app_server(("-c", "a=b", "-C", "folder"))
    assert not is_for_app_server(("--oss",))


def test_tokens_count_although_the_context_is_full():
    """Codex then reports a total of 0 tokens, and the size of its context as their sum."""
    turn = AppTurn(messages=AgentMessages("DONE", lambda _words: None))
    for tokens in (100, 0):
        total = {"inputTokens": tokens, "outputTokens": tokens, "totalTokens": 258_400}
        turn.read("thread/tokenUsage/updated", {"tokenUsage": {"total": total}})
    assert turn.total == Usage(input_tokens=100, output_tokens=100, cost_usd=None)
