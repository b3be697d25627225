"""`crew manager`: starts an agent that manages tasks, at a terminal or with --auto."""

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from crew.config.prompts import prompt
from crew.domain.agents.agent_kinds import refuse_unusable
from crew.domain.agents.manager_board import Point
from crew.domain.kernel.errors import CheckFailed, UsageError
from crew.front.cli.agent_help import agent_help
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.exit_codes import error_document
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import text_or_stdin
from crew.front.cli.tab_completion import complete_kinds
from crew.runner.by_hand.task_access import attach_to
from crew.runner.manager import TERMINAL, AutoManager, board_text, close_manager, open_manager

if TYPE_CHECKING:
    from crew.config.model import AgentsSettings
    from crew.workplace import Workplace


@command("manager", example="crew manager\ncrew manager --auto\ncrew manager --stop")
@click.argument("name", required=False, shell_complete=complete_kinds)
@click.option("-p", "--prompt", "words", help="Instructions for the manager; - reads stdin.")
@click.option("-m", "--model", default="", help="Model.  [default: the agent's own]")
@click.option("--auto", is_flag=True, help="Work through the board without a terminal.")
@click.option("--max-steps", type=click.IntRange(1), default=50, help="Step limit with --auto.")
@click.option("--stop", "ends", is_flag=True, help="End the manager in the terminal.")
@pass_call
def manager(
    call: Call, /, *, name: str | None, words: str | None, model: str, max_steps: int, **how: bool
) -> int:
    """Let an agent manage the tasks.

    It uses crew's own commands in the repository's root and changes no file there. In a terminal
    you talk to it. With --auto it decides what it can, waits for the agents, and exits when
    nothing is open (0) or when a person must decide (6), with the reason. With --auto -p it first
    creates the tasks that the instructions ask for. In its shell, `crew run --detach` starts the
    crew.
    """
    workplace = call.workplace()
    words = text_or_stdin(words)
    if how["ends"]:
        close_manager(workplace)
        _tell_end(call)
        return 0
    kind = _checked_manager(workplace.settings.agents, name)
    other = "`crew manager NAME` (`crew agents` lists them)"
    refuse_unusable(kind, workplace.rules, instead=other)
    if how["auto"]:
        made = AutoManager(
            workplace=workplace,
            kind=kind,
            instructions=_instructions(workplace, words),
            orders=words or "",
            model=model,
            say=lambda said: narrate(call, said),
        )
        return _report(call, made, asyncio.run(made.run(max_steps=max_steps)))
    open_manager(workplace, kind, instructions=_instructions(workplace, words), model=model)
    _show(call, workplace)
    return 0


def _checked_manager(agents: "AgentsSettings", name: str | None) -> str:
    """A manager kind; a worker would change files where a manager may only read."""
    found = agents.named(name or agents.manager_default)
    if found.role != "manager":
        managers = [one.name for one in agents.by_name.values() if one.role == "manager"]
        raise UsageError(
            f"{found.name} is a {found.role}, and `crew manager` takes a manager",
            hint=f"name one of {', '.join(sorted(managers))},"
            f' or set role = "manager" in [agents.{found.name}]',
            code="not_a_manager",
        )
    return found.name


def _instructions(workplace: "Workplace", words: str | None) -> str:
    commands = agent_help(click.get_current_context().find_root(), "manager")
    told = prompt("manager", root=str(workplace.root), help=commands)
    return f"{told}\n{words or ''}".strip()


def _show(call: Call, workplace: "Workplace") -> None:
    if call.json:
        print_json({"session": TERMINAL})
    elif sys.stdin.isatty() and sys.stdout.isatty():
        attach_to(workplace, TERMINAL)
    else:
        narrate(call, "the manager is up; `crew manager` in a terminal shows it")


def _tell_end(call: Call) -> None:
    if call.json:
        print_json({"session": TERMINAL, "stopped": True})
    else:
        narrate(call, "the manager has ended")


def _report(call: Call, made: AutoManager, points: tuple[Point, ...]) -> int:
    """Print what is open, as one JSON document even if it is the error."""
    failed = CheckFailed(
        f"this is open and needs a person:\n{board_text(points)}",
        hint="`crew show ID` shows more; its output is in .crew/logs/manager.log",
    )
    if call.json:
        undecided = [
            {"task": p.task, "title": p.title, "status": p.state, "why": p.why} for p in points
        ]
        error = error_document(failed) if points else {}
        print_json({**error, "steps": made.steps, "open": undecided})
        return failed.exit_code if points else 0
    if points:
        raise failed
    narrate(call, "nothing is open")
    return 0
