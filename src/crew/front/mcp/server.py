"""The MCP server inside the runner: streamable HTTP on loopback, stateless, one token a step."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from starlette.requests import Request as HttpRequest

import crew
from crew.domain.errors import CrewError
from crew.domain.requests import Request
from crew.front.mcp.guard import Guard, allowed_hosts, bearer, origins
from crew.front.mcp.tools import INSTRUCTIONS, LONGEST_CALL, TOOLS, Said, refusal, said, spoken

if TYPE_CHECKING:
    from crew.runner.loop import Runner

log = logging.getLogger(__name__)

FAREWELL_S = 1
"""How long answers that are on their way may take when the runner ends."""

Context = ServerRequestContext[Any, HttpRequest]


class Http(uvicorn.Server):
    """Leaves the signals of the process to the runner."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def serve(listener: socket.socket, runner: "Runner") -> None:
    """Serve until cancelled; answers that are on their way are still given."""
    logging.getLogger("mcp").setLevel(logging.WARNING)
    port = listener.getsockname()[1]
    sessions = session_manager(runner, port=port)
    guard = Guard(app=sessions.handle_request, port=port, prove=runner.tokens.owner)
    http = Http(
        uvicorn.Config(
            guard,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=FAREWELL_S,
        )
    )
    async with sessions.run():
        serving = asyncio.ensure_future(http.serve(sockets=[listener]))
        try:
            await asyncio.shield(serving)
        finally:
            http.should_exit = True
            await asyncio.wait([serving])


def session_manager(runner: "Runner", *, port: int) -> StreamableHTTPSessionManager:
    return StreamableHTTPSessionManager(
        tool_server(runner),
        json_response=True,
        stateless=True,
        max_request_body_size=LONGEST_CALL,
        # The guard says the same earlier; without settings of its own the SDK checks nothing.
        security_settings=TransportSecuritySettings(
            allowed_hosts=allowed_hosts(port), allowed_origins=origins(port)
        ),
    )


def tool_server(runner: "Runner") -> Server[Any]:
    async def list_tools(
        _context: Context, _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[Tool.model_validate(tool.view()) for tool in TOOLS])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        assert context.request is not None
        token = bearer(context.request.scope)
        answer = answered(runner, params.name, params.arguments or {}, token=token)
        content = TextContent(type="text", text=answer.text)
        return CallToolResult(content=[content], is_error=answer.is_error)

    return Server(
        "crew",
        version=crew.__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def answered(runner: "Runner", name: str, arguments: dict[str, Any], *, token: str) -> Said:
    try:
        asked = spoken(name, arguments, token=token)
        return said(runner.reply_to(Request(verb=asked.verb, args=asked.args)))
    except CrewError as error:
        log.warning("refused %s: %s", name[:100], error.message)
        return refusal(error)
