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
from uvicorn.protocols.http.h11_impl import H11Protocol

import crew
from crew.domain.kernel.errors import CrewError
from crew.domain.requests import Request
from crew.front.mcp.token_guard import Guard, Receive, Scope, Send, allowed_hosts, bearer, origins
from crew.front.mcp.tool_list import (
    LONGEST_CALL,
    ToolReply,
    refusal,
    said,
    spoken,
)
from crew.front.mcp.tool_list import Tool as CrewTool
from crew.front.mcp.tools_by_token import OFFERS, Offer, offered
from crew.system.connection_limit import ConnectionLimit

if TYPE_CHECKING:
    from crew.runner.runner import Runner

log = logging.getLogger(__name__)

FAREWELL_S = 1
"""How long open requests may take when the runner ends."""

MOST_CLIENTS = 128
AT_ONCE = 16
"""Connections that are accepted in one turn of the loop: a client has its turn before others."""

SILENT_S = 10.0
"""How long a client may take for its first request."""

Context = ServerRequestContext[Any, HttpRequest]


class Http(uvicorn.Server):
    """An HTTP server that leaves signal handling to the runner."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():  # asyncio accepts as many in one turn as it lets wait
            listener.listen(MOST_CLIENTS)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class Connection(H11Protocol):
    """A connection that must send a request in time, and leaves first when there are too many."""

    limit: ConnectionLimit

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.limit.enter(transport)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.scope is not None:
            self.limit.serve(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.limit.leave(self.transport)
        super().connection_lost(exc)


def bounded_connections() -> type[Connection]:
    """The connections of one server, with a limit of their own."""
    limit = ConnectionLimit("the MCP server", most=MOST_CLIENTS, silent_s=SILENT_S)
    return type("Bounded", (Connection,), {"limit": limit})


async def serve(listener: socket.socket, runner: "Runner") -> None:
    """Serve until cancelled; open requests are still answered."""
    logging.getLogger("mcp").setLevel(logging.WARNING)
    port = listener.getsockname()[1]
    sessions = {
        offer.begins: session_manager(tool_server(runner, offer), port=port) for offer in OFFERS
    }

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        """The HTTP application; each kind of token has its own tools."""
        await sessions[offered(bearer(scope)).begins].handle_request(scope, receive, send)

    guard = Guard(app=app, port=port, prove=runner.tokens.prove)
    http = Http(
        uvicorn.Config(
            guard,
            http=bounded_connections(),
            backlog=AT_ONCE,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=FAREWELL_S,
        )
    )
    async with contextlib.AsyncExitStack() as running:
        for manager in sessions.values():
            await running.enter_async_context(manager.run())
        serving = asyncio.ensure_future(http.serve(sockets=[listener]))
        try:
            await asyncio.shield(serving)
        finally:
            http.should_exit = True
            await asyncio.wait([serving])


def session_manager(server: Server[Any], *, port: int) -> StreamableHTTPSessionManager:
    return StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        max_request_body_size=LONGEST_CALL,
        # The guard checks the same earlier; without settings of its own the SDK checks nothing.
        security_settings=TransportSecuritySettings(
            allowed_hosts=allowed_hosts(port), allowed_origins=origins(port)
        ),
    )


def tool_server(runner: "Runner", offer: Offer) -> Server[Any]:
    async def list_tools(
        _context: Context, _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[Tool.model_validate(tool.view()) for tool in offer.tools])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        assert context.request is not None
        token = bearer(context.request.scope)
        answer = await answered(runner, offer.tools, params, token=token)
        content = TextContent(type="text", text=answer.text)
        return CallToolResult(content=[content], is_error=answer.is_error)

    return Server(
        "crew",
        version=crew.__version__,
        instructions=offer.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def answered(
    runner: "Runner", tools: tuple[CrewTool, ...], params: CallToolRequestParams, *, token: str
) -> ToolReply:
    """Answer a call; a read of a channel may wait for posts, all others are answered at once."""
    try:
        asked = spoken(params.name, params.arguments or {}, token=token, tools=tools)
        request = Request(verb=asked.verb, args=asked.args)
        await runner.readers.patiently(request)
        return said(runner.reply_to(request))
    except CrewError as error:
        log.warning("refused %s: %s", params.name[:100], error.message)
        return refusal(error)
