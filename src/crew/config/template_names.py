"""Checks the fields of a template when the config is read.

The syntax is the one that `crew.domain.kernel.templates` fills in.
"""

import re
from collections.abc import Sequence

from crew.domain.kernel.suggest import nearest

PLACE_NAMES = ("Worktree", "TaskID", "Branch", "GitDir", "RepoRoot", "BaseBranch")
DIFF_NAMES = ("Args", *PLACE_NAMES)
AGENT_NAMES = (
    *("Command", "SystemArgs", "Args", "Prompt", "Model", *PLACE_NAMES),
    *("PromptFile", "Session", "Resume"),
)

_TAG = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_NAMED = re.compile(r"(if\s+)?\.(\w+)")


def template_problem(template: str, names: Sequence[str]) -> str | None:
    """Why this template cannot be filled in; None if it can."""
    may_have_else: list[bool] = []  # for each open `if`
    for tag in _TAG.findall(template):
        if named := _NAMED.fullmatch(tag):
            if named[2] not in names:
                return f"{{{{.{named[2]}}}}} is unknown{_hint(named[2], names)}"
            if named[1]:
                may_have_else.append(True)
        elif tag == "else" and may_have_else and may_have_else[-1]:
            may_have_else[-1] = False
        elif tag == "end" and may_have_else:
            may_have_else.pop()
        else:
            return f"{{{{{tag}}}}} has no meaning there"
    return "an {{if}} has no {{end}}" if may_have_else else None


def _hint(name: str, names: Sequence[str]) -> str:
    near = nearest(name, names)
    return f", did you mean {{{{.{near}}}}}?" if near else f"; known: {', '.join(names)}"
