"""Where the MCP server listens: the same port after a restart, and a file that has the address."""

import logging
import re
import socket
from pathlib import Path

from crew.runner.prompts.mcp_connection import address_file
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(rf"http://{re.escape(LOOPBACK)}:(\d{{1,5}})/mcp\n?")


def open_listener(folder: Path) -> socket.socket:
    """At the port of the last runner of this crew, so that clients find it again, or at another."""
    try:
        return socket.create_server((LOOPBACK, _last_port(folder)))
    except OSError:  # another program has it by now
        return socket.create_server((LOOPBACK, 0))


def url_of(listener: socket.socket) -> str:
    return f"http://{LOOPBACK}:{listener.getsockname()[1]}/mcp"


@effect("mcp.keep_address")
def keep_address(folder: Path, url: str) -> None:
    """Without the file everything works but a client that has to find the server anew."""
    try:
        write_file(address_file(folder), f"{url}\n".encode(), mode=0o600)
    except OSError as error:
        log.warning("the address of the MCP server cannot be kept: %s", error)


def _last_port(folder: Path) -> int:
    """0, which is any free port, where none is known."""
    try:
        found = _ADDRESS.fullmatch(address_file(folder).read_text())
    except (OSError, ValueError):
        return 0
    port = int(found[1]) if found else 0
    return port if port < 2**16 else 0
