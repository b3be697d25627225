"""The address of the MCP server: the same port after a restart, and the file that names it."""

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
    """Listen on the port of the crew's last runner, so that clients find it, else on a free one."""
    try:
        return socket.create_server((LOOPBACK, _last_port(folder)))
    except OSError:  # another program uses it now
        return socket.create_server((LOOPBACK, 0))


def url_of(listener: socket.socket) -> str:
    return f"http://{LOOPBACK}:{listener.getsockname()[1]}/mcp"


@effect("mcp.keep_address")
def keep_address(folder: Path, url: str) -> None:
    """Write the address file; only clients that must find a restarted server need it."""
    try:
        write_file(address_file(folder), f"{url}\n".encode(), mode=0o600)
    except OSError as error:
        log.warning("the address of the MCP server cannot be kept: %s", error)


def _last_port(folder: Path) -> int:
    """The port of the last runner; 0 (any free port) if it is unknown."""
    try:
        found = _ADDRESS.fullmatch(address_file(folder).read_text())
    except (OSError, ValueError):
        return 0
    port = int(found[1]) if found else 0
    return port if port < 2**16 else 0
