"""The settings folder of one task's terminal for Claude Code, with answers to its first questions.

A headless Claude Code asks none. On macOS its login belongs to the person's folder, so it asks.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crew.agents.adapter import StepOrder
from crew.agents.first_run import answer_first_run
from crew.agents.own_home import link_parts, own_home, read_settings, write_settings

_FOLDER = "CLAUDE_CONFIG_DIR"
_SETTINGS = ".claude.json"
_LINKED = (
    *("settings.json", "CLAUDE.md", "agents", "commands", "skills", "plugins"),
    *("projects", "sessions", "todos", "file-history", ".credentials.json"),
)


def claude_variables(
    order: StepOrder, environment: Mapping[str, str], answers: Iterable[Mapping[str, Any]]
) -> dict[str, str]:
    """Make the folder; returns the variable that leads the program to it.

    Raises OSError, ValueError or TypeError if the person's settings cannot be read.
    """
    if sys.platform == "darwin":
        return {}
    home = Path(environment.get("HOME", ""))
    theirs = Path(environment.get(_FOLDER) or home / ".claude")
    file = (theirs if environment.get(_FOLDER) else home) / _SETTINGS
    folder = own_home(order) / ".claude"
    link_parts(folder, theirs, _LINKED)
    write_settings(folder / _SETTINGS, read_settings(file))
    problems = answer_first_run(answers, worktree=order.worktree, home=folder, environ=environment)
    if problems:
        raise OSError("; ".join(problems))
    return {_FOLDER: str(folder)}
