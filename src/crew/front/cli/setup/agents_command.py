"""`crew agents`: lists the agent kinds and whether they are installed; sets an agent's kind."""

from typing import Any

import click

from crew.config.agent_programs import missing_program, program_of, program_path
from crew.config.model import AgentSettings, AgentsSettings
from crew.domain.kernel.errors import UsageError
from crew.domain.requests import Request
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import CrewGroup, command
from crew.front.cli.output import narrate, print_json, table
from crew.front.cli.params import agent_argument
from crew.front.cli.tab_completion import complete_kinds
from crew.runner.views.row_views import agent_view
from crew.store.fact_log import load_world

HEAD = ("NAME", "ROLE", "MODEL", "INSTALLED", "DESCRIPTION")


@click.group(
    "agents",
    cls=CrewGroup,
    invoke_without_command=True,
    example="crew agents\ncrew agents --json\ncrew agents set A codex",
)
@click.pass_context
def agents(ctx: click.Context) -> None:
    """List the configured agents.

    A star marks the defaults."""
    if ctx.invoked_subcommand is None:
        _list(ctx.ensure_object(Call))


@command("set", example="crew agents set A codex")
@agent_argument()
@click.argument("kind", shell_complete=complete_kinds)
@pass_call
def set_kind(call: Call, name: str, kind: str) -> None:
    """Choose the configured agent behind a name of `crew ps`.

    It applies from the agent's next task on. Without a choice an agent follows [agents]
    worker_default, or the --agent of `crew run`.
    """
    from crew.runner.requests.ask_crew import ask  # noqa: PLC0415 - the list does without a runner

    workplace = call.workplace()
    chosen = _checked_worker(workplace.settings.agents, kind)
    task = ask(workplace, Request(verb="set_kind", args={"agent": name, "kind": chosen}))
    if call.json:
        world = load_world(workplace.db)
        print_json(agent_view(world, world.agents[name]))
        return
    narrate(call, f"agent {name} is {chosen}{f' after task {task}' if task else ''}")
    if missing := missing_program(workplace.settings.agents.named(chosen)):
        narrate(call, f"warning: {missing} is not installed")


def _checked_worker(settings: AgentsSettings, kind: str) -> str:
    """A worker kind; a reviewer or manager could change no file, so no task would be finished."""
    found = settings.named(kind)
    if found.role != "worker":
        workers = sorted(one.name for one in settings.by_name.values() if one.role == "worker")
        raise UsageError(
            f"{kind} is a {found.role}, and tasks need a worker",
            hint=f"name one of {', '.join(workers)}",
            code="not_a_worker",
        )
    return found.name


agents.add_command(set_kind)


def _list(call: Call) -> None:
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
        "path": program_path(agent),
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
