"""Fills in the keys that an agent inherits from another agent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crew.config.agent_programs import program_in
from crew.config.model import AgentSettings
from crew.config.validate_config import readers
from crew.domain.kernel.errors import UsageError
from crew.domain.kernel.names import agent_name
from crew.domain.kernel.suggest import nearest

_OF_THE_HOME = ("home_read", "home_write", "home_copy", "first_run")


def resolved_agents(tables: Mapping[str, Any]) -> dict[str, AgentSettings]:
    named = {name: table for name, table in tables.items() if isinstance(table, dict)}
    return {agent_name(name): _agent(name, named) for name in named}


def with_inherited(tables: Mapping[str, Any]) -> dict[str, Any]:
    """`[agents]` as written, with inherited keys filled in."""
    named = {name: table for name, table in tables.items() if isinstance(table, dict)}
    return {**tables, **{name: _fill_in(name, named) for name in named}}


def _fill_in(name: str, named: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for ancestor in reversed(_line_of(name, named)):
        table = _inherit(table, named[ancestor])
    return {**_home_of_its_cli(table, named), **table}


def _home_of_its_cli(
    table: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """What the CLI of an agent needs of the person's home, as the kind of the CLI's name has it.

    Without it the sandbox has no login for the CLI, and forgets each session after its step.
    """
    command, template = (str(table.get(key) or "") for key in ("command", "command_template"))
    program = command or program_in(template)
    for kind in (str(table.get("adapter")), Path(program or "").name):
        if kind in named and "home_write" in named[kind]:
            return {key: named[kind][key] for key in _OF_THE_HOME if key in named[kind]}
    return {}


def _agent(name: str, named: Mapping[str, Mapping[str, Any]]) -> AgentSettings:
    table = _fill_in(name, named)
    if not table.get("adapter"):
        raise UsageError(
            f"agents.{name} names neither a command nor an adapter",
            hint="give it command_template, command, adapter or inherit",
        )
    if ("price_input" in table) != ("price_output" in table):
        raise UsageError(
            f"agents.{name} has only one of price_input and price_output",
            hint="set both, in dollars for a million tokens, or none",
        )
    known = readers(AgentSettings)
    fields = {known[key][0]: known[key][1](value) for key, value in table.items()}
    # Two keys, so that setting `args` of an agent keeps the permissions of its role.
    arguments = (*fields.get("system_args", ()), *fields.get("args", ()))
    return AgentSettings(name=name, **{**fields, "args": arguments})


def _line_of(name: str, named: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The agent, the agent it inherits from, and so on up to the last."""
    line = [name]
    while parent := named[line[-1]].get("inherit"):
        if parent not in named:
            near = nearest(str(parent), named)
            raise UsageError(
                f"agents.{line[-1]} inherits from {parent!r}, which does not exist",
                hint=f"did you mean {near}?" if near else f"there are: {', '.join(sorted(named))}",
            )
        if parent in line:
            cycle = [*line[line.index(parent) :], parent]
            raise UsageError(
                f"agents inherit from each other in a cycle: {' → '.join(cycle)}",
                hint=f"remove `inherit` from one of them, e.g. from agents.{line[-1]}",
            )
        line.append(parent)
    return line


def _inherit(below: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Own values win. A command selects an adapter only if none is inherited."""
    table = {**below, **with_template(own)}
    if "env" in below and "env" in own:
        table["env"] = {**below["env"], **own["env"]}
    if "adapter" not in table and "command" in table:
        table["adapter"] = "command"
    return table


def with_template(own: Mapping[str, Any]) -> dict[str, Any]:
    """An agent's own template wins over an inherited adapter."""
    if "command_template" not in own:
        return dict(own)
    in_a_pane = {"interactive_template": own["command_template"], "interactive_resume": ""}
    unsaid = {"adapter": "command", **in_a_pane}
    return {**own, **{key: value for key, value in unsaid.items() if key not in own}}
