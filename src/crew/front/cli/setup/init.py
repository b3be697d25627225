"""`crew init`: creates `.crew/` and prints what it found."""

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from crew.config.agent_programs import missing_program
from crew.config.gate_command import Gate, choose_gate, read_gate_files
from crew.config.set_key import set_key
from crew.config.suggested_gate import suggest_gate
from crew.domain.kernel.errors import Conflict
from crew.domain.rules import Rules
from crew.domain.runs.gate import SET_GATE
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json, say
from crew.front.cli.setup.agent_needs import another_agent
from crew.front.cli.setup.gate_notice import empty_submodules
from crew.front.cli.setup.trust_command import tell_waiting
from crew.runner.readiness import problems
from crew.runner.upkeep.doctor_checks import SIGN, UNSIGNED, signs_nothing
from crew.trusted_config import load_settings, proposals, remember_own
from crew.workplace import Workplace, make_workplace, usable_repository


@command("init", example="crew init\ncrew init --tasks tk")
@click.option(
    "--tasks", type=click.Choice(["files", "tk"]), help="Where tasks are kept.  [default: files]"
)
@pass_call
def init(call: Call, tasks: str | None) -> None:
    """Set up crew in this repository.

    Creates .crew/, keeps it out of git (except tasks) and prints what it found. Running it again
    changes nothing that exists.
    """
    if tasks is not None:
        _keep_source(call, tasks)
    workplace = make_workplace(call.directory)
    remember_own(workplace.root)
    found = _found(workplace)
    tell_waiting(call, proposals(workplace.root))
    if call.json:
        print_json(found)
    else:
        _print(found)
        narrate(call, _next(found, workplace.rules))


def _keep_source(call: Call, source: str) -> None:
    """Store the task source before anything else, since it decides where tasks are kept."""
    root = usable_repository(call.directory).root
    _refuse_other_tasks(root, source)
    if load_settings(root).tasks.source != source:
        set_key(root, os.environ, scope="repo", key="tasks.source", typed=source)


def _refuse_other_tasks(root: Path, source: str) -> None:
    """Refuse another source than that of the tasks that this crew has worked on."""
    workplace = Workplace(root=root)
    if not workplace.database_file.exists():
        return
    with contextlib.closing(workplace.db):
        known = workplace.kept_tasks_of
    if known is not None and known.partition("/")[0] != source:
        raise Conflict(
            f"this crew works on the tasks of {known}, not of {source}",
            hint=f"`crew clean` deletes all records except the tasks; `crew init --tasks {source}` "
            "works after it",
            code="other_tasks",
        )


def _found(workplace: "Workplace") -> dict[str, Any]:
    settings = workplace.settings
    gate = choose_gate(settings.complete.command, read_gate_files(workplace.root))
    guess = None if gate else suggest_gate(workplace.root)
    has_tickets = settings.tasks.source != "tk" and (workplace.root / ".tickets").is_dir()
    named = [agent for agent in settings.agents.by_name.values() if agent.role == "worker"]
    return {
        "root": str(workplace.root),
        "tasks": settings.tasks.source,
        "target": workplace.target,
        "gate": _gate(gate),
        "suggested_gate": _gate(guess),
        "tickets": has_tickets,
        "submodules": (workplace.root / ".gitmodules").exists(),
        "large_files": _large_files(workplace),
        "empty_submodules": list(workplace.empty_submodules),
        "unsigned": signs_nothing(workplace),
        "agents": [{"name": a.name, "installed": missing_program(a) is None} for a in named],
        "worker": settings.agents.worker_default,
        "problems": [{"message": one.message, "fix": one.hint} for one in problems(workplace)],
    }


def _large_files(workplace: "Workplace") -> dict[str, str] | None:
    """What tasks lack to have the files of git-lfs."""
    from crew.runner.upkeep.doctor_checks import large_files  # noqa: PLC0415 - much to load

    found = next((one for one in large_files(workplace) if one.is_wrong), None)
    return {"problem": found.message, "fix": found.fix} if found else None


def _gate(gate: Gate | None) -> dict[str, str] | None:
    return {"command": gate.command, "reason": gate.reason} if gate else None


def _print(found: dict[str, Any]) -> None:
    gate = found["gate"]
    say(f"crew is set up in {found['root']}")
    say(f"  tasks:   {found['tasks']}")
    say(f"  target:  {found['target']} (finished work lands there)")
    if gate:
        say(f"  gate:    {gate['command']} ({gate['reason']})")
    else:
        say(f"  gate:    none found, so nothing is tested; {_way_to_a_gate(found)}")
    names = [f"{a['name']}{'' if a['installed'] else ' (not installed)'}" for a in found["agents"]]
    say(f"  agents:  {', '.join(names)}; workers are {found['worker']}")
    for words in _notices(found):
        say(f"  {words}")


def _way_to_a_gate(found: dict[str, Any]) -> str:
    guess = found["suggested_gate"]
    if guess is None:
        return SET_GATE
    command = f"`crew config set complete.command {shlex.quote(guess['command'])}`"
    return f"{guess['reason']}: {command}"


def _notices(found: dict[str, Any]) -> Iterator[str]:
    for problem in found["problems"]:
        yield f"problem: {problem['message']}: {problem['fix']}"
    if found["tickets"]:
        yield "tickets: .tickets/ is there: `crew init --tasks tk` uses its tickets as tasks"
    if words := empty_submodules(found["empty_submodules"]):
        yield f"modules: {words}"
    if found["large_files"]:
        yield f"git-lfs: {found['large_files']['problem']}; {found['large_files']['fix']}"
    if found["unsigned"]:
        yield f"signing: {UNSIGNED}; {SIGN}"
    if found["tasks"] == "files":
        yield (
            "git:     only .crew/tasks/ shows in `git status`: commit it to share the tasks, or "
            "`echo /.crew/ >> .git/info/exclude` hides it; the rest of .crew/ is hidden"
        )


def _next(found: dict[str, Any], rules: Rules) -> str:
    """The next commands up to a first run; first, how to install a missing agent."""
    installed = {agent["name"] for agent in found["agents"] if agent["installed"]}
    if found["worker"] in installed:
        return 'next: crew new --title "…", then crew run'
    return f"next: install {found['worker']}, or choose another agent: {another_agent(rules)}"
