"""The home of one task for Gemini CLI, which takes its tools and its trust from settings alone."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crew.agents.adapter import StepOrder
from crew.agents.first_run import make_folder
from crew.agents.own_home import link_parts, merged, own_home, read_settings, write_settings
from crew.domain.kernel.text import as_json
from crew.system.atomic_files import rewrite_file
from crew.system.crash_points import effect

log = logging.getLogger(__name__)

_HOME = "GEMINI_CLI_HOME"
_TRUST = "GEMINI_CLI_TRUST_WORKSPACE"
_FOLDER = ".gemini"
_SETTINGS = "settings.json"
_LINKED = (
    *("GEMINI.md", ".env", "extensions", "policies", "commands", "skills", "tmp"),
    *("oauth_creds.json", "google_accounts.json", "installation_id", "trustedFolders.json"),
)
_CREW_TOOLS = {
    "httpUrl": "$CREW_MCP_URL",
    "headers": {"Authorization": "Bearer $CREW_TOKEN"},
    "trust": True,
}


def gemini_variables(order: StepOrder, environment: Mapping[str, str]) -> dict[str, str]:
    """Make the home; returns the variables that lead the program to it.

    Raises OSError, ValueError or TypeError if the person's settings cannot be read.
    """
    theirs = Path(environment.get(_HOME) or environment.get("HOME", "")) / _FOLDER
    settings = read_settings(theirs / _SETTINGS)
    if _has_former_tools(settings):
        settings = _without_former_tools(theirs / _SETTINGS, settings)
    folder = own_home(order) / _FOLDER
    make_folder(theirs / "tmp")  # sessions: `gemini --resume` of the person finds them too
    link_parts(folder, theirs, _LINKED)
    write_settings(folder / _SETTINGS, merged(settings, _added(settings, order, environment)))
    trust = {_TRUST: "true"} if order.trusts_project else {}
    return {_HOME: str(own_home(order)), **trust}


def _added(
    settings: Mapping[str, Any], order: StepOrder, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Keep the worktree's own settings off, use the key in the environment, add crew's tools."""
    security: dict[str, Any] = {"folderTrust": {"enabled": True}}
    auth = settings.get("security", {}).get("auth", {})
    if environment.get("GEMINI_API_KEY") and not auth.get("selectedType"):
        security["auth"] = {"selectedType": "gemini-api-key"}
    tools = {"mcpServers": {"crew": _CREW_TOOLS}} if order.env.get("CREW_MCP_URL") else {}
    return {"security": security, **tools}


def _has_former_tools(settings: Mapping[str, Any]) -> bool:
    servers = settings.get("mcpServers")
    return isinstance(servers, dict) and servers.get("crew") == _CREW_TOOLS


def _without_former_tools(file: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Remove what older versions of crew wrote into a person's settings."""
    servers = {name: one for name, one in settings["mcpServers"].items() if name != "crew"}
    kept = {name: value for name, value in settings.items() if name != "mcpServers"}
    result = {**kept, **({"mcpServers": servers} if servers else {})}
    _rewrite(file, result)
    log.warning("removed crew's server from %s, where an older version had put it", file)
    return result


@effect("agents.remove_former_tools")
def _rewrite(file: Path, settings: Mapping[str, Any]) -> None:
    text = as_json(settings, indent=2) + "\n"
    rewrite_file(file, text.encode(), mode=0o600, is_durable=True)
