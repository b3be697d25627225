"""The files of crew's plugins for assistants, and where each assistant looks for them."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import crew

ASSISTANTS = ("claude", "codex", "gemini")
SERVER = "crew-tasks"
"""Its name for Codex and Gemini: their steps connect to a server called `crew`."""

_SUMMARY = "Give work to a crew of coding agents, watch it, and answer what they ask."
_README = """# crew

{summary}

`crew plugin install {assistant}` wrote this folder, and `crew plugin uninstall {assistant}` removes
it. It holds an MCP server (`crew mcp`, with the tools of a person), a skill that explains them,
and {more}.
It works in every repository in which `crew init` was run.
"""


def plugin_folder(assistant: str, environ: Mapping[str, str]) -> Path:
    """The folder that holds nothing but crew's plugin."""
    home = Path.home()
    if assistant == "claude":
        return Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "skills" / "crew"
    if assistant == "codex":
        return codex_home(environ) / "skills" / "crew"
    return Path(environ.get("GEMINI_CLI_HOME") or home) / ".gemini" / "extensions" / "crew"


def codex_home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("CODEX_HOME") or Path.home() / ".codex")


def plugin_files(assistant: str) -> dict[str, str]:
    """The content of each file, by its name below the plugin's folder."""
    return {"claude": _claude, "codex": _codex, "gemini": _gemini}[assistant](own_program())


def own_program() -> str:
    """The `crew` that is called now, by a path that an update keeps."""
    called = Path(sys.argv[0])
    is_crew = called.name in {"crew", "git-crew"} and called.exists()
    found = str(called) if is_crew else shutil.which("crew")
    return os.path.abspath(found) if found else "crew"  # noqa: PTH100 - a link stays a link


def own_server(program: str) -> dict[str, Any]:
    """How an assistant starts crew's server."""
    return {"command": program, "args": ["mcp"], "env": {"CREW_MCP_FOR": "person"}}


def _claude(program: str) -> dict[str, str]:
    manifest = {
        "name": "crew",
        "version": crew.__version__,
        "description": _SUMMARY,
        "author": {"name": "crew"},
        "license": "MIT",
        "skills": ["./"],
    }
    monitor = {
        "name": "crew-news",
        "command": f"{_quoted(program)} _news",
        "description": "crew: questions and failures",
    }
    more = "a hook that shows open questions, with a monitor of crew's events"
    return {
        ".claude-plugin/plugin.json": _document(manifest),
        ".mcp.json": _document({"mcpServers": {"crew": own_server(program)}}),
        "SKILL.md": _skill(),
        "hooks/hooks.json": _hooks(program, "SessionStart", "UserPromptSubmit"),
        "monitors/monitors.json": _document([monitor]),
        "README.md": _README.format(summary=_SUMMARY, assistant="claude", more=more),
    }


def _gemini(program: str) -> dict[str, str]:
    manifest = {
        "name": "crew",
        "version": crew.__version__,
        "description": _SUMMARY,
        "mcpServers": {SERVER: own_server(program)},
    }
    more = "a hook that shows open questions"
    return {
        "gemini-extension.json": _document(manifest),
        "skills/crew/SKILL.md": _skill(),
        "hooks/hooks.json": _hooks(program, "SessionStart", "BeforeAgent"),
        "README.md": _README.format(summary=_SUMMARY, assistant="gemini", more=more),
    }


def _codex(_program: str) -> dict[str, str]:
    return {"SKILL.md": _skill()}


def _hooks(program: str, *events: str) -> str:
    def hook(event: str) -> list[dict[str, Any]]:
        command = f"{_quoted(program)} _waiting {event}"
        return [{"hooks": [{"type": "command", "command": command}]}]

    return _document({"hooks": {event: hook(event) for event in events}})


def _skill() -> str:
    return Path(__file__).with_name("plugin_skill.md").read_text(encoding="utf-8")


def _quoted(program: str) -> str:
    import shlex  # noqa: PLC0415 - only to install

    return shlex.quote(program)


def _document(content: Any) -> str:
    return json.dumps(content, indent=2) + "\n"
