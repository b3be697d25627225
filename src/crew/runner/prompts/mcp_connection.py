"""The connection of an agent to the runner: its token, the agent door, the MCP server's address."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from crew.runner.requests.door_folder import door_socket

if TYPE_CHECKING:
    from crew.workplace import Workplace


def address_file(folder: Path) -> Path:
    """The file whose only line is the MCP server's address; it stays when the runner ends."""
    return folder / "mcp-address"


def is_server_installed() -> bool:
    """Whether the optional packages of the MCP server are installed."""
    return all(find_spec(name) is not None for name in ("mcp", "uvicorn"))


def connection(workplace: "Workplace", token: str) -> dict[str, str]:
    """The environment variables for an agent that may start before the runner or outlive it.

    Each runner listens at the address of the last one; before the first runner there is none.
    """
    try:
        url = address_file(workplace.folder).read_text().strip()
    except (OSError, ValueError):
        url = ""
    return {**token_variables(workplace, token), **url_variables(workplace, url)}


def url_variables(workplace: "Workplace", url: str) -> dict[str, str]:
    """The MCP server's address, unless the agent has no network and so could not reach it.

    Its `crew` command and the stdio shim use the door, which needs none.
    """
    is_reached = workplace.settings.sandbox.network is not False
    return {"CREW_MCP_URL": url} if url and is_reached else {}


def token_variables(workplace: "Workplace", token: str) -> dict[str, str]:
    """The agent's token, and the door at which it is accepted."""
    return {"CREW_TOKEN": token, "CREW_DOOR": str(door_socket(workplace))}
