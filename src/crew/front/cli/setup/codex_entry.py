"""Crew's entry in the settings of a person's Codex. Every other byte there stays as it was.

Codex rewrites its settings: it splits a table, moves a comment or drops it. So the entry is found
by its keys, and the comments around it are only for people.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from crew.config.toml.toml_edit import with_value, without_key
from crew.config.toml.toml_spans import written_key, written_value
from crew.domain.kernel.errors import Conflict
from crew.front.cli.setup.plugin_files import SERVER, own_server

_ENTRY = ("mcp_servers", SERVER)
_BEGIN, _END = "# crew plugin: begin\n", "# crew plugin: end\n"
_MARK = re.compile(r"^# crew plugin: (?:begin|end)\r?(?:\n|\Z)", re.MULTILINE)


def with_entry(settings: Path, program: str) -> str:
    """The settings in which crew's server is this program. An entry keeps what others added."""
    text = _text(settings)
    known, wanted = _entry(settings, text), own_server(program)
    if known is None:
        return _appended(settings, text, wanted)
    if not _is_own(known):
        raise Conflict(
            f"{settings} has an entry mcp_servers.{SERVER} that crew did not write",
            hint="remove it, then repeat `crew plugin install codex`",
            code="entry_not_ours",
        )
    for name in ("command", "args"):
        if known.get(name) != wanted[name]:
            text = with_value(text, (*_ENTRY, name), wanted[name])
    return text


def without_entry(settings: Path) -> str | None:
    """The settings without crew's server; None if crew has written nothing there.

    An entry that is not crew's any more stays, with crew's comments around it.
    """
    text = _text(settings)
    is_marked = _MARK.search(text) is not None
    known = _entry(settings, text) if is_marked or SERVER in text else None
    if known is None:
        return _unmarked(text) if is_marked else None
    if not _is_own(known):
        return text if is_marked else None
    return without_key(_unmarked(text), _ENTRY)


def _appended(settings: Path, text: str, server: dict[str, Any]) -> str:
    bare = _unmarked(text)
    gap = "" if not bare else "\n" if bare.endswith("\n") else "\n\n"
    lines = (f"{name} = {written_value(value)}\n" for name, value in server.items())
    added = f"{bare}{gap}{_BEGIN}[{written_key(_ENTRY)}]\n{''.join(lines)}{_END}"
    _entry(settings, added)  # an inline table cannot be continued like this
    return added


def _unmarked(text: str) -> str:
    """The text without crew's comments. A line that looks like one may be part of a value."""
    bare = _MARK.sub("", text)
    return bare if tomllib.loads(bare) == tomllib.loads(text) else text


def _is_own(entry: Any) -> bool:
    """Nothing else starts a server of this name for crew's plugin."""
    variables = entry.get("env") if isinstance(entry, dict) else None
    return isinstance(variables, dict) and variables.get("CREW_MCP_FOR") == "person"


def _entry(settings: Path, text: str) -> Any:
    try:
        servers = tomllib.loads(text).get("mcp_servers")
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(settings, str(error)) from error
    return servers.get(SERVER) if isinstance(servers, dict) else None


def _text(settings: Path) -> str:
    try:
        return settings.read_bytes().decode() if settings.is_file() else ""
    except UnicodeDecodeError as error:
        raise _unreadable(settings, str(error)) from error


def _unreadable(settings: Path, why: str) -> Conflict:
    return Conflict(
        f"crew cannot change its entry in {settings}: {why}",
        hint="correct the file (an inline table mcp_servers must become [mcp_servers]), and repeat",
        code="settings_unreadable",
    )
