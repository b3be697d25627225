"""How an agent reaches the runner: the address of the MCP server, and the token it shows there."""

from importlib.util import find_spec
from pathlib import Path


def address_file(folder: Path) -> Path:
    """Has the address of the MCP server as its only line; it stays when the runner ends."""
    return folder / "mcp-address"


def is_server_installed() -> bool:
    """Whether there is an MCP server at all: it needs packages that crew does without."""
    return all(find_spec(name) is not None for name in ("mcp", "uvicorn"))


def connection(folder: Path, token: str) -> dict[str, str]:
    """The variables for an agent that may outlive the runner, or be there before one.

    Every runner of a crew listens where the one before it did; before the first there is none.
    """
    try:
        url = address_file(folder).read_text().strip()
    except (OSError, ValueError):
        url = ""
    return {"CREW_TOKEN": token, **({"CREW_MCP_URL": url} if url else {})}
