"""The agent door: a unix socket on which the runner answers steps, terminals, reviews and members.

Inside a sandbox there is no `.crew/`, and the door is the only way to crew. A caller sends one JSON
line, `{"token", "verb", "args"}`, and gets one line back: `{"reply"}` or `{"error", "exit_code"}`.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from crew.domain.channels.member_requests import VERBS as MEMBER_VERBS
from crew.domain.kernel.errors import CrewError, UsageError
from crew.domain.requests import Request
from crew.runner.requests.checked_requests import refusal
from crew.runner.requests.door_client import LONGEST_LINE
from crew.runner.requests.door_folder import (
    door_socket,
    listen_at,
    make_door_folder,
    remove_door,
    sweep_doors,
)
from crew.runner.requests.person_only import for_people
from crew.runner.requests.refused_acts import report_refused
from crew.runner.requests.tokens import VERBS as STEP_VERBS
from crew.system.connection_limit import ConnectionLimit

if TYPE_CHECKING:
    from crew.runner.runner import Runner

log = logging.getLogger(__name__)

DOOR_VERBS = STEP_VERBS | MEMBER_VERBS.keys()
"""The requests that a token allows; all others are for people."""

MOST_CALLERS = 64
AT_ONCE = 8
"""Connections that are accepted in one turn of the loop: a caller has its turn before others."""

SILENT_S = 5.0
"""How long a caller may take to send its line, or to read its answer."""


@asynccontextmanager
async def agent_door(runner: "Runner") -> AsyncIterator[None]:
    """Serve the door while the runner runs; its failure ends nothing else."""
    async with contextlib.AsyncExitStack() as opened:
        try:
            await opened.enter_async_context(_open_door(runner))
        except (CrewError, OSError) as error:
            log.error("agents cannot reach crew through the door: %s", error)  # noqa: TRY400
        yield


@asynccontextmanager
async def _open_door(runner: "Runner") -> AsyncIterator[None]:
    workplace = runner.workplace
    sweep_doors()
    make_door_folder(workplace)
    listener = listen_at(door_socket(workplace))
    limit = ConnectionLimit("the agent door", most=MOST_CALLERS, silent_s=SILENT_S)
    loop = asyncio.get_running_loop()
    server = await loop.create_unix_server(
        lambda: _Caller(runner, limit), sock=listener, backlog=AT_ONCE
    )
    listener.listen(MOST_CALLERS)  # asyncio accepts as many in one turn as it lets wait
    try:
        yield
    finally:
        server.close()
        has_terminals = any(one.is_up for one in runner.engine.world.terminals.values())
        remove_door(door_socket(workplace), keep_folder=has_terminals)


class _Caller(asyncio.Protocol):
    """One connection: it reads a line, answers it and closes."""

    def __init__(self, runner: "Runner", limit: ConnectionLimit) -> None:
        self._runner = runner
        self._limit = limit
        self._line = bytearray()
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._limit.enter(transport)

    def data_received(self, data: bytes) -> None:
        if self._answering is not None:
            return
        self._line += data
        if b"\n" not in data and len(self._line) <= LONGEST_LINE:
            return
        self._limit.serve(self._transport)
        self._answering = asyncio.ensure_future(self._answer(bytes(self._line.partition(b"\n")[0])))
        self._line.clear()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._limit.leave(self._transport)
        if self._answering is not None:
            self._answering.cancel()

    async def _answer(self, line: bytes) -> None:
        try:
            words = await answered(self._runner, line)
            self._transport.write(json.dumps(words).encode() + b"\n")
        except Exception:
            log.exception("a request at the agent door was not answered")
        self._transport.close()
        # A caller that does not read its answer keeps its connection no longer than this.
        asyncio.get_running_loop().call_later(SILENT_S, self._transport.abort)


async def answered(runner: "Runner", line: bytes) -> dict[str, Any]:
    """The answer to a line; a refusal is an answer too."""
    try:
        request = parsed_line(line)
        if request.verb not in DOOR_VERBS:
            report_refused(runner, request)
            raise for_people(f"the request {request.verb!r}")
        await runner.readers.patiently(request)
        return runner.reply_to(request)
    except CrewError as error:
        return refusal(error)


def parsed_line(line: bytes) -> Request:
    """The request of a line; raises unless it is one that a token allows."""
    if len(line) > LONGEST_LINE:
        raise UsageError(f"a request has at most {LONGEST_LINE:,} bytes", hint="send less")
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        raise UsageError("this line is not JSON", hint="send one JSON object on one line") from None
    shape = {"token": str, "verb": str, "args": dict}
    is_whole = isinstance(given, dict) and all(
        isinstance(given.get(name), kind) for name, kind in shape.items()
    )
    if not is_whole:
        raise UsageError(
            "a request has a token, a verb and args",
            hint='send {"token": "…", "verb": "get_task", "args": {}}',
        )
    return Request(verb=given["verb"], args={**given["args"], "token": given["token"]})
