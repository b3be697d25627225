"""Starts the MCP server next to the runner when it is needed; its failure ends nothing else."""

import asyncio
import importlib
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING

from crew.domain.world import World
from crew.front.mcp.mcp_address import keep_address, open_listener, url_of
from crew.runner.prompts.mcp_connection import is_server_installed

if TYPE_CHECKING:
    from crew.runner.runner import Runner

log = logging.getLogger(__name__)

SPEAKING_MCP = frozenset({"claude", "codex", "opencode", "gemini", "acp"})
"""The adapters whose CLI connects at its start, so that the server is loaded before."""

LOOK_EVERY_S = 1.0
"""How often to check whether such an agent was added."""


@asynccontextmanager
async def mcp_server(runner: "Runner") -> AsyncIterator[None]:
    """Serve MCP while the runner runs; do nothing without the SDK."""
    if not is_server_installed():
        yield
        return
    serving = asyncio.ensure_future(_serve_once_called(runner))
    # One turn of the loop opens the port, so that the first step knows the address.
    await asyncio.sleep(0)
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def _serve_once_called(runner: "Runner") -> None:
    """Listen at once, and load the server, which takes a second and 40 MB, at the first use.

    A client that connects in the meantime waits in the socket's queue.
    """
    try:
        with _listening(runner) as listener:
            await _called(runner, listener)
            server = await asyncio.to_thread(importlib.import_module, "crew.front.mcp.mcp_server")
            await server.serve(listener, runner)
            log.error("the MCP server has ended; agents use `crew signal`")
    except Exception:
        log.exception("the MCP server failed; agents use `crew signal`")


async def _called(runner: "Runner", listener: socket.socket) -> None:
    """Wait until a client has connected, or one surely will."""
    loop = asyncio.get_running_loop()
    called = asyncio.Event()
    loop.add_reader(listener, called.set)
    try:
        while not called.is_set() and not is_expected(runner):
            with suppress(TimeoutError):
                await asyncio.wait_for(called.wait(), LOOK_EVERY_S)
    finally:
        loop.remove_reader(listener)


def is_expected(runner: "Runner") -> bool:
    known = runner.workplace.settings.agents.by_name
    world = runner.engine.world
    kinds = {agent.agent_kind for agent in world.crew.values()}
    return _has_guests(world) or any(
        known[kind].adapter in SPEAKING_MCP for kind in kinds if kind in known
    )


def _has_guests(world: World) -> bool:
    """Whether an open channel has a member that connects by itself."""
    return any(
        not member.is_driven and world.channels[member.channel].is_open
        for member in world.members.values()
    )


@contextmanager
def _listening(runner: "Runner") -> Iterator[socket.socket]:
    """Open the port; steps get its address only while it is open."""
    folder = runner.workplace.folder
    with open_listener(folder) as listener:
        runner.outside.mcp_url = url_of(listener)
        keep_address(folder, runner.outside.mcp_url)
        try:
            yield listener
        finally:
            runner.outside.mcp_url = ""
