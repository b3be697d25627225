"""Any agent that speaks the Agent Client Protocol is driven by it, with its quirks."""

import asyncio
import json
import sys
from dataclasses import replace

import pytest

from agents.contract import (
    SILENT,
    StreamContract,
    order,
    program,
    run_and_tell,
    run_step,
    say,
    shell,
)
from crew.agents.acp import acp
from crew.agents.adapter import (
    AgentSpec,
    Interrupt,
    Permission,
    Say,
    Watch,
    adapter_for,
)
from crew.config.agent_programs import missing_program
from crew.config.model import AgentSettings
from crew.domain.kernel.adapter_names import ADAPTERS
from crew.domain.rows.step import ErrorKind, Usage

__all__ = ["order"]

SESSION = "sess_1"

AGENT = """
import json, os, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
plan = json.load(open(here + "/plan"))

def tell(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()

def update(update_kind, **fields):
    params = {"sessionId": plan["session"], "update": {"sessionUpdate": update_kind, **fields}}
    tell(method="session/update", params=params)

def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    with open(here + "/heard", "a") as file:
        file.write(line)
    return json.loads(line)

def until(what):
    while True:
        message = hear()
        if message.get("method") == what or message.get("id") == what:
            return message

def perform(kind, value):
    if kind == "say":
        for piece in value[:1], value[1:]:
            content = {"type": "text", "text": piece}
            update("agent_message_chunk", content=content)
        update("tool_call", toolCallId="t", title="next", kind="execute")
    elif kind == "shell":
        subprocess.run(value, shell=True)
    elif kind == "exit":
        os._exit(value)
    elif kind == "update":
        update(value["kind"], **{name: one for name, one in value.items() if name != "kind"})
    elif kind == "ask":
        params = {"sessionId": plan["session"], **value["params"]}
        tell(id="q1", method=value["method"], params=params)
        until("q1")
    elif kind == "cancelled":
        until("session/cancel")
        answer(value)

def answer(reason):
    tell(id=prompt, result={"stopReason": reason, **plan["answer"]})
    while True:
        hear()

def reply(message):
    method = message.get("method")
    if method in plan["refuse"]:
        tell(id=message["id"], error=plan["refuse"][method])
        while True:
            hear()
    results = {
        "initialize": {"protocolVersion": 1, "agentCapabilities": plan["can"]},
        "session/new": {"sessionId": plan["session"], "configOptions": plan["options"]},
        "session/load": {"configOptions": plan["options"]},
        "session/resume": {"configOptions": plan["options"]},
        "session/set_config_option": {"configOptions": plan["options"]},
    }
    if method == "session/load":
        update("agent_message_chunk", content={"type": "text", "text": "DONE"})
    tell(id=message["id"], result=results[method])

while True:
    message = hear()
    if message["method"] == "session/prompt" and "session/prompt" not in plan["refuse"]:
        break
    reply(message)
prompt = message["id"]
for kind, value in plan["acts"]:
    perform(kind, value)
answer(plan["stop"])
"""

CAN = {"loadSession": True, "mcpCapabilities": {"http": True}}
MODELS = {
    "id": "the-model",
    "name": "Model",
    "type": "select",
    "category": "model",
    "currentValue": "a",
    "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}],
}


def agent(folder, *acts, **plan):
    """A program that speaks as an agent does, for one turn of these acts."""
    folder.mkdir(exist_ok=True)
    usual = {
        "session": SESSION,
        "can": CAN,
        "options": [],
        "refuse": {},
        "stop": "end_turn",
        "answer": {},
    }
    (folder / "plan").write_text(json.dumps({**usual, "acts": acts, **plan}))
    made = program(folder / "agent", AGENT, interpreter=f"{sys.executable} -ISu")
    return AgentSpec(name="any", adapter="acp", command=str(made))


@pytest.fixture
def play_turn(tmp_path):
    return lambda *acts, **plan: adapter_for(agent(tmp_path / "acp", *acts, **plan))


@pytest.fixture
def heard(tmp_path):
    """The messages with this method that the agent has got."""

    def heard(method):
        lines = (tmp_path / "acp" / "heard").read_text().splitlines()
        return [one["params"] for one in map(json.loads, lines) if one.get("method") == method]

    return heard


def refusing(method, code, message, data=None):
    return {"refuse": {method: {"code": code, "message": message, "data": data}}}


PROMPT = "session/prompt"
FAILURES = {
    "no login": (ErrorKind.AUTH, refusing("session/new", -32000, "Authentication required")),
    "401 while prompting": (ErrorKind.AUTH, refusing(PROMPT, -32000, "Authentication required")),
    "401 as its code": (ErrorKind.AUTH, refusing(PROMPT, 401, "it said no to us")),
    "429 as its code": (ErrorKind.RATE_LIMIT, refusing(PROMPT, 429, "slow down a bit")),
    "503 as its code": (ErrorKind.OVERLOADED, refusing(PROMPT, 503, "not this time")),
    "401 in its data": (
        ErrorKind.AUTH,
        refusing(PROMPT, -32603, "Internal error", {"errorName": "APIError", "statusCode": 401}),
    ),
    "429 in its words": (
        ErrorKind.RATE_LIMIT,
        refusing(PROMPT, -32603, "Internal error", {"details": "429 Too Many Requests"}),
    ),
    "credit": (ErrorKind.BILLING, refusing(PROMPT, -32603, "Credit balance is too low")),
    "too long": (ErrorKind.CONTEXT_FULL, refusing(PROMPT, -32603, "Prompt is too long")),
    "anything else": (ErrorKind.CRASHED, refusing(PROMPT, -32603, "Internal error", "odd thing")),
    "no such session": (ErrorKind.SESSION_UNKNOWN, refusing(PROMPT, -32002, "Resource not found")),
    "another session": (
        ErrorKind.SESSION_UNKNOWN,
        refusing(PROMPT, -32603, "Invalid session identifier"),
    ),
    "refusal": (ErrorKind.CRASHED, {"stop": "refusal"}),
    "cut off": (ErrorKind.CRASHED, {"stop": "max_tokens"}),
    "cancelled by somebody": (ErrorKind.CRASHED, {"stop": "cancelled"}),
    "an answer that is none": (ErrorKind.CRASHED, {"stop": 5}),
}


class TestAcpAdapter(StreamContract):
    FAILURES = FAILURES

    @pytest.fixture
    def stage(self, tmp_path):
        return lambda *acts: agent(tmp_path / "acp", *acts)

    @pytest.fixture
    def order(self, order):
        """The agent names its sessions itself; this one is named already."""
        return replace(order, session=SESSION)

    @pytest.fixture
    def heard_prompt(self, heard):
        return lambda: heard(PROMPT)[0]["prompt"][0]["text"]

    @pytest.fixture
    def fake(self, play_turn):
        return lambda code, **plan: play_turn(**plan)


def test_a_session_is_loaded_again_and_its_past_is_not_its_present(play_turn, order, heard):
    outcome = run_step(play_turn(say("hi")), order)
    assert (outcome.session, outcome.text) == (SESSION, "hi\n")
    again = replace(order, session=SESSION, resume=True)
    outcome = run_step(play_turn(say("more")), again)
    assert (outcome.done, outcome.text) == (False, "more\n")
    assert heard("session/load")[0] == {
        "sessionId": SESSION,
        "cwd": str(order.worktree),
        "mcpServers": [],
    }


def test_a_session_whose_first_step_was_cut_short_is_found_again(play_turn, order, heard):
    run_step(play_turn(("exit", 137)), order)
    run_step(play_turn(), replace(order, resume=True))
    assert heard("session/load")[0]["sessionId"] == SESSION


def test_a_session_may_be_resumed_where_it_cannot_be_loaded(play_turn, order, heard):
    again = replace(order, session=SESSION, resume=True)
    can = {"sessionCapabilities": {"resume": {}}}
    assert run_step(play_turn(say("x"), can=can), again).error is None
    assert heard("session/resume")[0]["sessionId"] == SESSION
    error = run_step(play_turn(say("x"), can={}), again).error
    assert error.kind is ErrorKind.SESSION_UNKNOWN


def test_crews_tools_are_offered_to_an_agent_that_can_use_them(play_turn, order, heard):
    env = {**order.env, "CREW_MCP_URL": "http://127.0.0.1:1/mcp", "CREW_TOKEN": "secret"}
    run_step(play_turn(), replace(order, env=env))
    server = heard("session/new")[-1]["mcpServers"][0]
    assert (server["type"], server["name"]) == ("http", "crew")
    assert server["url"] == "http://127.0.0.1:1/mcp"
    assert server["headers"] == [{"name": "Authorization", "value": "Bearer secret"}]
    run_step(play_turn(can={}), replace(order, env=env))
    assert heard("session/new")[-1]["mcpServers"] == []


def test_only_a_new_session_is_told_its_instructions(order, tmp_path, heard):
    adapter = adapter_for(replace(agent(tmp_path / "acp"), system_prompt="be kind"))
    run_step(adapter, order)
    run_step(adapter, replace(order, session=SESSION, resume=True))
    assert [one["prompt"][0]["text"] for one in heard(PROMPT)] == ["be kind\n\ndo it", "do it"]


def test_a_model_is_chosen_where_the_agent_lets_it_be_chosen(order, tmp_path, heard):
    spec = replace(agent(tmp_path / "acp", options=[MODELS]), model="b")
    assert run_step(adapter_for(spec), order).error is None
    chosen = heard("session/set_config_option")[0]
    assert (chosen["configId"], chosen["value"]) == ("the-model", "b")
    error = run_step(adapter_for(replace(agent(tmp_path / "acp"), model="b")), order).error
    assert "args" in error.message


def test_usage_is_that_of_the_turn_and_cost_since_the_turn_before(play_turn, order):
    used = {"totalTokens": 160, "inputTokens": 10, "outputTokens": 20, "thoughtTokens": 30}

    def turn(amount, currency="USD"):
        cost = {"amount": amount, "currency": currency}
        told = {"kind": "usage_update", "used": 1, "size": 2, "cost": cost}
        return play_turn(("update", told), answer={"usage": used})

    first = run_step(turn(0.25), order)
    assert first.usage == Usage(input_tokens=110, output_tokens=50, cost_usd=0.25)
    again = replace(order, session=SESSION, resume=True)
    assert run_step(turn(1.0), again).usage.cost_usd == pytest.approx(0.75)
    assert run_step(turn(1.0, "EUR"), again).usage.cost_usd is None
    assert run_step(turn(0.0), again).usage.cost_usd is None


def test_the_cost_of_a_turn_that_was_cut_off_is_unknown(play_turn, order):
    cost = {"amount": 0.25, "currency": "USD"}
    told = {"kind": "usage_update", "used": 1, "size": 2, "cost": cost}
    outcome = run_step(play_turn(("update", told), ("exit", 1)), order)
    assert (outcome.usage.cost_usd, outcome.error.kind) == (None, ErrorKind.CRASHED)


def test_usage_that_one_agent_tells_elsewhere_is_found(play_turn, order):
    quota = {"token_count": {"input_tokens": 7, "output_tokens": 3}}
    usage = run_step(play_turn(answer={"_meta": {"quota": quota}}), order).usage
    assert usage == Usage(input_tokens=7, output_tokens=3, cost_usd=None)


@pytest.mark.parametrize("reason", ["cancelled", "max_turn_requests"])
def test_an_interrupt_cancels_the_turn_and_is_no_error(play_turn, order, reason):
    adapter = play_turn(say("DONE"), shell("echo > up"), ("cancelled", reason))
    outcome = run_and_tell(
        adapter,
        order,
        SILENT,
        when=order.worktree / "up",
        words=[Say(message="m-1", text="hurry"), Interrupt(), Interrupt()],
    )
    assert (outcome.error, outcome.done, outcome.session) == (None, False, SESSION)


def test_words_for_the_agent_wait_for_its_next_step(play_turn, order):
    taken = []
    watch = Watch(started=SILENT.started, doing=SILENT.doing, heard=taken.append)
    adapter = play_turn(shell("echo > up"), say("DONE"))
    words = [Say(message="m-1", text="hurry")]
    outcome = run_and_tell(adapter, order, watch, when=order.worktree / "up", words=words)
    assert (outcome.done, taken) == (True, [])


OPTIONS = [
    {"optionId": kind, "name": kind, "kind": kind}
    for kind in ("allow_always", "reject_always", "allow_once", "reject_once")
]
CALL = {"toolCallId": "t", "title": "touch x", "kind": "execute", "rawInput": {"command": "touch"}}


def asking(options=OPTIONS):
    params = {"toolCall": CALL, "options": options}
    return ("ask", {"method": "session/request_permission", "params": params})


def chosen(tmp_path):
    lines = (tmp_path / "acp" / "heard").read_text().splitlines()
    answer = next(one for one in map(json.loads, lines) if one.get("id") == "q1")
    return answer["result"]["outcome"]


@pytest.mark.parametrize(("allowed", "option"), [(True, "allow_once"), (False, "reject_once")])
def test_a_person_is_asked_for_leave(play_turn, order, tmp_path, allowed, option):
    questions = []

    async def asked(permission):
        questions.append(permission)
        return allowed

    watch = Watch(started=SILENT.started, doing=SILENT.doing, asked=asked)
    assert run_step(play_turn(asking(), say("DONE")), order, watch).done
    assert questions == [Permission(tool="execute", detail="touch x\n{'command': 'touch'}")]
    assert chosen(tmp_path) == {"outcome": "selected", "optionId": option}


def test_where_nobody_is_asked_it_may(play_turn, order, tmp_path):
    assert run_step(play_turn(asking(OPTIONS[:2]), say("DONE")), order).done
    assert chosen(tmp_path) == {"outcome": "selected", "optionId": "allow_always"}


def test_a_question_without_a_fitting_answer_is_cancelled(play_turn, order, tmp_path):
    assert run_step(play_turn(asking(OPTIONS[1:2]), say("DONE")), order).done
    assert chosen(tmp_path) == {"outcome": "cancelled"}


def test_a_question_that_outlives_the_step_is_dropped(play_turn, order):
    async def never(_permission):
        await asyncio.Event().wait()

    watch = Watch(started=SILENT.started, doing=SILENT.doing, asked=never)
    tell = {"kind": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
    adapter = play_turn(("update", tell), asking())
    outcome = run_step(adapter, replace(order, timeout_s=2.0), watch)
    assert outcome.error.kind is ErrorKind.TIMEOUT


@pytest.mark.parametrize("method", ["fs/write_text_file", "terminal/create", "new/thing"])
def test_what_crew_does_not_offer_is_refused_at_once(play_turn, order, method):
    adapter = play_turn(("ask", {"method": method, "params": {}}), say("DONE"))
    assert run_step(adapter, order).done


def test_updates_of_a_kind_that_nobody_knows_do_no_harm(play_turn, order):
    odd = [{"kind": "new_thing"}, {"kind": "agent_message_chunk", "content": []}]
    adapter = play_turn(*(("update", one) for one in odd), say("DONE"))
    assert run_step(adapter, order).done


def test_without_the_sdk_or_a_command_it_says_what_to_do(play_turn, order, monkeypatch):
    nothing = adapter_for(AgentSpec(name="mine", adapter="acp"))
    assert "agents.mine" in run_step(nothing, order).error.message
    monkeypatch.setattr(acp.importlib.util, "find_spec", lambda name: None)
    error = run_step(play_turn(say("x")), order).error
    assert error.kind is ErrorKind.NOT_INSTALLED
    assert "git-crew[acp]" in error.message


def test_the_list_of_agents_says_when_the_sdk_is_missing(monkeypatch):
    settings = AgentSettings(name="mine", adapter="acp", command="sh")
    assert missing_program(settings) is None
    monkeypatch.setattr(acp.importlib.util, "find_spec", lambda name: None)
    assert missing_program(settings) == "git-crew[acp]"


def test_every_adapter_can_be_configured_and_loaded():
    for name in ADAPTERS:
        assert hasattr(adapter_for(AgentSpec(name="any", adapter=name)), "run_step")


@pytest.mark.parametrize(
    ("command", "args", "adapter"),
    [
        ("/usr/bin/gemini", ("--acp",), "gemini"),
        ("npx", ("-y", "@google/gemini-cli", "--acp"), "gemini"),
        ("codex-acp", (), "codex"),
        ("npx", ("@agentclientprotocol/codex-acp@2.6.0",), "codex"),
    ],
)
def test_a_program_that_another_adapter_drives_is_refused(order, command, args, adapter):
    spec = AgentSpec(name="mine", adapter="acp", command=command, args=args)
    error = run_step(adapter_for(spec), order).error
    assert error.kind is ErrorKind.NOT_INSTALLED
    assert f'agents.mine.adapter = "{adapter}"' in error.message


def test_settings_of_the_repository_that_no_person_approved_refuse_the_step(order):
    spec = AgentSpec(name="mine", adapter="acp", command="agent")
    error = run_step(adapter_for(spec), replace(order, unapproved=(".mcp.json",))).error
    assert error.kind is ErrorKind.PERMISSION_DENIED
    assert ".mcp.json" in error.message
    assert "crew trust" in error.message
