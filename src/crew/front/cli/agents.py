"""`crew agents`: the configured agents and whether their programs are here."""

import importlib.util
import shlex
import shutil
from typing import Any

from crew.config.model import AgentSettings, AgentsSettings
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command import command
from crew.front.cli.output import print_json, table

HEAD = ("NAME", "ROLE", "MODEL", "INSTALLED", "DESCRIPTION")


@command("agents", example="crew agents\ncrew agents --json")
@pass_call
def agents(call: Call) -> None:
    """List the configured agents.

    A star marks those that are meant when none is named."""
    settings = call.workplace().settings.agents
    views = [_view(one, _defaults(settings)) for one in settings.by_name.values()]
    if call.json:
        print_json(views)
    else:
        table(HEAD, [_row(view) for view in views], call)


def _defaults(settings: AgentsSettings) -> dict[str, str]:
    return {
        "worker": settings.worker_default,
        "reviewer": settings.reviewer_default,
        "manager": settings.manager_default,
    }


def _view(agent: AgentSettings, defaults: dict[str, str]) -> dict[str, Any]:
    program = program_of(agent)
    missing = missing_program(agent)
    roles = [role for role, name in defaults.items() if name == agent.name]
    return {
        "name": agent.name,
        "role": agent.role,
        "model": agent.default_model,
        "adapter": agent.adapter,
        "program": program,
        "path": shutil.which(program) if program else None,
        "installed": missing is None,
        "missing": missing,
        "default": bool(roles),
        "default_for": roles,
        "description": agent.description,
    }


def _row(view: dict[str, Any]) -> tuple[str, ...]:
    name = f"{view['name']} *" if view["default"] else view["name"]
    return (name, view["role"], view["model"] or "-", _installed(view), view["description"])


def _installed(view: dict[str, Any]) -> str:
    if not view["installed"]:
        return f"no: {view['missing']} is missing"
    return f"yes: {view['path']}" if view["path"] else "yes"


def program_of(agent: AgentSettings) -> str | None:
    """The program that is started first; None where crew brings it along."""
    if agent.adapter == "scripted":
        return None
    if agent.command or not agent.command_template:
        return agent.command
    try:
        words = shlex.split(agent.command_template)
    except ValueError:
        return None
    first = next((word for word in words if "=" not in word.partition("/")[0]), None)
    return first if first and "{{" not in first else None


def missing_program(agent: AgentSettings) -> str | None:
    """The agent's program if it is not on the path; a relative one is for its worktree to know.

    An agent by the Agent Client Protocol needs crew's extra for it too.
    """
    if agent.adapter == "acp" and importlib.util.find_spec("acp") is None:
        return "crew[acp]"
    program = program_of(agent)
    if program is None or shutil.which(program) is not None:
        return None
    return None if "/" in program and not program.startswith("/") else program
