"""A repository with instructions, skills and settings for each CLI, and traps among the settings.

Each text for the model contains a word that begins with `seen-`; each trap makes a file.
"""

import json
import re
from pathlib import Path

from crew.agents.codex.codex_flags import toml
from real_clis.scripted_model import Asked

INSTRUCTIONS = {
    "CLAUDE.md": "seen-claude\n@docs/for-claude.md\n",
    "docs/for-claude.md": "seen-claude-import\n",
    ".claude/rules/style.md": "seen-claude-rule\n",
    "AGENTS.md": "seen-agents\n",
    "GEMINI.md": "seen-gemini\n@./docs/for-gemini.md\n",
    "docs/for-gemini.md": "seen-gemini-import\n",
}


def _skill(name: str) -> str:
    return f"---\nname: {name}\ndescription: seen-{name}\n---\nDo it.\n"


SKILLS = {
    ".claude/skills/claude-skill/SKILL.md": _skill("claude-skill"),
    ".opencode/skill/opencode-skill/SKILL.md": _skill("opencode-skill"),
    ".agents/skills/shared-skill/SKILL.md": _skill("shared-skill"),
}


def _traps(proof: Path) -> dict[str, str]:
    def command(name: str) -> list[str]:
        return ["touch", str(proof / name)]

    def hook(name: str) -> dict:
        one = {"type": "command", "command": " ".join(command(name))}
        return {"hooks": {"SessionStart": [{"hooks": [one]}]}}

    def server(name: str) -> dict:
        return {"command": command(name)[0], "args": command(name)[1:]}

    opencode = {"mcp": {"trap": {"type": "local", "command": command("opencode-server")}}}
    gemini = {"mcpServers": {"trap": server("gemini-server")}}
    return {
        ".claude/settings.json": json.dumps(hook("claude-hook")),
        ".mcp.json": json.dumps({"mcpServers": {"trap": server("claude-server")}}),
        ".codex/config.toml": '[mcp_servers.trap]\ncommand = "touch"\n'
        f"args = {toml([str(proof / 'codex-server')])}\n",
        "opencode.json": json.dumps(opencode),
        ".gemini/settings.json": json.dumps(gemini),
    }


def lay_out(folder: Path, proof: Path | None = None) -> None:
    """Write the instructions and skills; with `proof` also the traps, which make files there."""
    files = {**INSTRUCTIONS, **SKILLS}
    if proof is not None:
        proof.mkdir()
        files |= _traps(proof)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def seen(asked: Asked) -> set[str]:
    """The marks in a request to the model."""
    return {word.removeprefix("seen-") for word in re.findall(r"seen-[a-z-]+", str(asked.body))}


def sprung(proof: Path) -> set[str]:
    return {path.name for path in proof.iterdir()}
