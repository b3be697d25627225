"""`crew mcp`: serves MCP over stdin and stdout, and passes each tool call on to the runner.

Each step of an agent starts one, so it loads almost nothing until a tool is called.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import crew
from crew.domain.kernel.errors import CrewError, NeedsLogin
from crew.front.mcp.person_tools import (
    PERSON_INSTRUCTIONS,
    PERSON_TOOLS,
    is_in_linked_worktree,
)
from crew.front.mcp.tool_list import (
    LONGEST_CALL,
    TOOLS,
    Tool,
    ToolCall,
    ToolReply,
    refusal,
    said,
    spoken,
)
from crew.front.mcp.tools_by_token import offered

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The protocol versions, the oldest first; a client that asks for another is offered the newest."""

PATIENCE_S = 60.0

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602


class Fault(Exception):
    """A message that cannot be served, with its JSON-RPC error number."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number
        self.message = message


def serve(source: BinaryIO | None = None, sink: BinaryIO | None = None) -> int:
    """Answer line by line until the client closes the stream."""
    source, sink = source or sys.stdin.buffer, sink or sys.stdout.buffer
    try:
        while line := source.readline(LONGEST_CALL + 1):
            is_long = len(line) > LONGEST_CALL
            answer = _refuse_long(line, source) if is_long else respond(line)
            if answer is not None:
                sink.write(json.dumps(answer).encode() + b"\n")
                sink.flush()
    except BrokenPipeError:
        # The reader is gone; without this the interpreter prints an error at its last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return 130
    return 0


def _refuse_long(piece: bytes, source: BinaryIO) -> dict[str, Any]:
    """Refuse a line that is too long: read it to its end, keep only its id for the answer."""
    from crew.front.mcp.long_line import IdScan  # noqa: PLC0415 - hardly ever needed

    scan = IdScan()
    scan.feed(piece)
    while piece and not piece.endswith(b"\n"):
        piece = source.readline(LONGEST_CALL + 1)
        scan.feed(piece)
    fault = Fault(INVALID_REQUEST, f"a message has at most {LONGEST_CALL:,} bytes; send less")
    return _faulty(scan.found if _is_number(scan.found) else None, fault)


def respond(line: bytes) -> dict[str, Any] | None:
    """The answer to one line; None if it needs none."""
    number: str | int | None = None
    try:
        message = _message(line)
        if message is None or "id" not in message:
            return None
        number = _number(message)
        result = _method(message)(_params(message))
    except Fault as fault:
        return _faulty(number, fault)
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _faulty(number: str | int | None, fault: Fault) -> dict[str, Any]:
    error = {"code": fault.number, "message": fault.message}
    return {"jsonrpc": "2.0", "id": number, "error": error}


def _message(line: bytes) -> dict[str, Any] | None:
    """A request or a notification; None for a blank line and for a response."""
    if not line.strip():
        return None
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise Fault(PARSE_ERROR, "this line is not JSON; send one message a line") from None
    if isinstance(message, list):
        raise Fault(INVALID_REQUEST, "batches are not taken; send one message a line")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise Fault(INVALID_REQUEST, 'a message is an object with "jsonrpc": "2.0"')
    if "method" not in message and ("result" in message or "error" in message):
        return None
    return message


def _number(message: Mapping[str, Any]) -> str | int:
    number: str | int = message["id"]
    if not _is_number(number):
        raise Fault(INVALID_REQUEST, "the id of a request is a text or a whole number")
    return number


def _is_number(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _method(message: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    name = message.get("method")
    if not isinstance(name, str):
        raise Fault(INVALID_REQUEST, "a request names its method")
    if name not in METHODS:
        raise Fault(NO_METHOD, f"there is no method {name[:100]}; known: {', '.join(METHODS)}")
    return METHODS[name]


def _params(message: Mapping[str, Any]) -> Mapping[str, Any]:
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise Fault(INVALID_PARAMS, "params is an object")
    return params


def _initialize(params: Mapping[str, Any]) -> dict[str, Any]:
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[-1],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "crew", "version": crew.__version__},
        "instructions": _offered()[1],
    }


def _ping(_params: Mapping[str, Any]) -> dict[str, Any]:
    return {}


def _list_tools(_params: Mapping[str, Any]) -> dict[str, Any]:
    return {"tools": [tool.view() for tool in _offered()[0]]}


def _call_tool(params: Mapping[str, Any]) -> dict[str, Any]:
    name = params.get("name")
    if not isinstance(name, str):
        raise Fault(INVALID_PARAMS, "name the tool to call")
    try:
        if _needs_a_token(name):
            raise NeedsLogin(
                "only an agent's own step has this tool, and CREW_TOKEN is not set",
                hint="pass CREW_TOKEN and CREW_DOOR of the step on to `crew mcp`",
            )
        given = params.get("arguments") or {}
        asked = spoken(name, given, token=_own_token(), tools=_offered()[0])
        return (_done_for_a_person if _is_for_a_person() else _passed_on)(asked).view()
    except CrewError as error:
        return _refused(name, error).view()
    except OSError as error:
        hint = "nothing was changed; use `crew signal` in a shell instead"
        return _refused(name, CrewError(str(error), hint=hint)).view()


def _refused(name: str, error: CrewError) -> ToolReply:
    """A refusal for the agent, also printed to the log of its CLI."""
    print(f"crew mcp: refused {name[:100]}: {error.message}", file=sys.stderr)
    return refusal(error)


METHODS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "initialize": _initialize,
    "ping": _ping,
    "tools/list": _list_tools,
    "tools/call": _call_tool,
}


def _own_token() -> str:
    return os.environ.get("CREW_TOKEN", "")


def _offered() -> tuple[tuple[Tool, ...], str]:
    """The tools and the instructions for the client that started this."""
    if _is_for_a_person():
        return PERSON_TOOLS, PERSON_INSTRUCTIONS
    if _is_for_people_only():
        return (), ""
    offer = offered(_own_token())
    return offer.tools, offer.instructions


def _is_for_a_person() -> bool:
    """Whether a person's assistant calls: no token, and not in a worktree, where a step lost it."""
    if _own_token():
        return False
    if _is_for_people_only():
        from crew.runner.requests.agent_process import is_agent_process  # noqa: PLC0415

        return not is_agent_process()
    return not is_in_linked_worktree()


def _is_for_people_only() -> bool:
    """Whether this is the server of a plugin, which agents of the same user start too."""
    return os.environ.get("CREW_MCP_FOR") == "person"


def _needs_a_token(tool: str) -> bool:
    if _is_for_people_only():
        return False
    is_a_steps = not _is_for_a_person() or tool in {one.name for one in TOOLS}
    return is_a_steps and not _own_token()


def _done_for_a_person(asked: ToolCall) -> ToolReply:
    from crew.front.mcp.person_calls import done_for_a_person  # noqa: PLC0415 - slow to load

    return done_for_a_person(asked)


def _passed_on(asked: ToolCall) -> ToolReply:
    """Pass a call on to the runner: through the door of the step, else through its database."""
    from crew.runner.requests.door_client import ask_door, door_path, no_runner  # noqa: PLC0415

    words = None
    if door := door_path():
        words = ask_door(door, asked.verb, asked.args, timeout_s=PATIENCE_S)
    else:
        words = _asked_in_database(asked)
    if words is None:
        raise no_runner()
    return said(words)


def _asked_in_database(asked: ToolCall) -> dict[str, Any] | None:
    """For a member of a channel that connects by itself; the slow imports are here."""
    import time  # noqa: PLC0415
    from contextlib import closing  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    from crew.domain.requests import Request  # noqa: PLC0415
    from crew.find_crew import load_folder  # noqa: PLC0415
    from crew.runner.requests.runner_pipe import ask_runner  # noqa: PLC0415
    from crew.store.database import open_database  # noqa: PLC0415

    folder = load_folder(Path(os.environ.get("CREW_REPO") or Path.cwd()))
    with closing(open_database(folder / "crew.db")) as db:
        request = Request(verb=asked.verb, args=asked.args)
        return ask_runner(folder, db, request, give_up_at=time.monotonic() + PATIENCE_S)
