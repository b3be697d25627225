"""Checks that the agent kinds which a command needs are installed, and suggests a fix."""

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from crew.domain.agents.agent_kinds import LeftOut, Need, unusable
from crew.domain.kernel.errors import CrewError
from crew.domain.rules import Rules
from crew.front.cli.call import Call
from crew.front.cli.output import narrate

if TYPE_CHECKING:
    from crew.workplace import Workplace

OWN = "mine"
"""The name of a user's own agent kind in a hint."""


def check_kinds(workplace: "Workplace", kinds: Iterable[str]) -> None:
    """Raise for the first of these kinds that cannot be started."""
    for kind in kinds:
        if problem := _problem(Need(kind=kind), workplace.rules, another_agent(workplace.rules)):
            raise problem


def check_needs(call: Call, out: LeftOut, rules: Rules) -> None:
    """Raise if no agent can work; else print which agents are left out and why."""
    problems = [found for need in out.needs if (found := _problem(need, rules))]
    if out.is_all and problems:
        raise problems[0]
    for problem in problems:
        narrate(call, f"left out: {problem.message} ({problem.hint})")


def _problem(need: Need, rules: Rules, instead: str = "") -> CrewError | None:
    return unusable(need.kind, rules, instead=instead or _way_out(need, rules))


def _way_out(need: Need, rules: Rules) -> str:
    """The narrowest command that gives the work to another kind."""
    kind = _installed(rules)
    if need.reviews:
        reviewer = next((one for one in _usable(rules) if one.endswith("-reviewer")), kind)
        return (
            f"`crew config set review.agent {reviewer or 'KIND'}`; "
            "or do without: `crew config set review.mode none`"
        )
    if need.kind == rules.default_kind or not (need.agents or need.tasks):
        return another_agent(rules)
    if need.agents:
        return f"`crew agents set {need.agents[0]} {kind or 'KIND'}`"
    return f"`crew edit {need.tasks[0]} --agent {kind or 'KIND'}`"


def another_agent(rules: Rules) -> str:
    """The commands that make another kind the default: an installed one, or the user's own."""
    if kind := _installed(rules):
        return f"`crew config set agents.worker_default {kind}`"
    template = shlex.quote("PROGRAM {{.Prompt}}")
    return (
        f"`crew config set agents.{OWN}.command_template {template}`, "
        f"then `crew config set agents.worker_default {OWN}`"
    )


def _installed(rules: Rules) -> str | None:
    """An installed worker kind, other than the scripted one."""
    roles = ("-reviewer", "-manager")
    found = [kind for kind in _usable(rules) if not kind.endswith(roles) and kind != "scripted"]
    return found[0] if found else None


def _usable(rules: Rules) -> list[str]:
    return [kind for kind in rules.providers if rules.can_use(kind)]
