"""Opens the address of the MCP server beside the runner, and survives the server's failing."""

import asyncio
import importlib
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crew.runner.loop import Runner

log = logging.getLogger(__name__)


@asynccontextmanager
async def mcp_server(runner: "Runner") -> AsyncIterator[None]:
    """The server, for as long as the runner runs; without the SDK, nothing."""
    if not is_installed():
        yield
        return
    serving = asyncio.ensure_future(_serve_once_called(runner))
    # Its first turn on the loop opens the port, so that the very first step knows the address.
    await asyncio.sleep(0)
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def is_installed() -> bool:
    return all(find_spec(name) is not None for name in ("mcp", "uvicorn"))


async def _serve_once_called(runner: "Runner") -> None:
    """Every step is told the address; the server takes a second of CPU and 40 MB once it is used.

    Whoever connects while it is loaded waits in the queue.
    """
    try:
        with _listening(runner) as listener:
            await _called(listener)
            server = await asyncio.to_thread(importlib.import_module, "crew.front.mcp.server")
            await server.serve(listener, runner)
            log.error("the MCP server has ended; agents use `crew signal`")
    except Exception:
        log.exception("the MCP server failed; agents use `crew signal`")


async def _called(listener: socket.socket) -> None:
    """Until somebody has connected."""
    loop = asyncio.get_running_loop()
    called = asyncio.Event()
    loop.add_reader(listener, called.set)
    try:
        await called.wait()
    finally:
        loop.remove_reader(listener)


@contextmanager
def _listening(runner: "Runner") -> Iterator[socket.socket]:
    """The address is told to steps only while somebody listens there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        runner.outside.mcp_url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        try:
            yield listener
        finally:
            runner.outside.mcp_url = ""
