"""The connection of an agent to the runner: the MCP server's address, and the agent's token."""

from importlib.util import find_spec
from pathlib import Path


def address_file(folder: Path) -> Path:
    """The file whose only line is the MCP server's address; it stays when the runner ends."""
    return folder / "mcp-address"


def is_server_installed() -> bool:
    """Whether the optional packages of the MCP server are installed."""
    return all(find_spec(name) is not None for name in ("mcp", "uvicorn"))


def connection(folder: Path, token: str) -> dict[str, str]:
    """The environment variables for an agent that may start before the runner or outlive it.

    Each runner listens at the address of the last one; before the first runner there is none.
    """
    try:
        url = address_file(folder).read_text().strip()
    except (OSError, ValueError):
        url = ""
    return {"CREW_TOKEN": token, **({"CREW_MCP_URL": url} if url else {})}
