"""Attaches a person to a task's terminal, and runs a command in its worktree."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from crew.agents.terminal import tmux
from crew.agents.terminal.dialog_keys import enter_text
from crew.agents.terminal.tmux import Tmux
from crew.domain.kernel.errors import NotFound
from crew.domain.kernel.names import terminal_name
from crew.domain.terminals.dialogs import TerminalInput
from crew.runner.sandbox.confinement import for_command
from crew.runner.terminals.terminal_input import read_terminal
from crew.store.fact_log import load_world
from crew.system.processes.allowed_environment import allowed_environment
from crew.system.processes.process import become, load_wrapper
from crew.system.processes.start_command import Wrapper, confined
from crew.system.sandbox.allowed import Sandbox
from crew.workplace import Workplace


def has_terminal(workplace: Workplace, name: str) -> bool:
    return tmux.find_session(Tmux(folder=workplace.folder), name) is not None


def terminal_takes(workplace: Workplace, task: str) -> TerminalInput | None:
    """What the task's terminal takes now; None if crew opened no terminal for it."""
    world = load_world(workplace.db)
    run = world.runs.get(world.tasks[task].run or "") if task in world.tasks else None
    terminal = world.terminal_of(run.id) if run else None
    return read_terminal(workplace, terminal, run) if terminal and run else None


def attach_to(workplace: Workplace, name: str) -> NoReturn:
    """Show a task's terminal in this one: this process becomes a tmux client."""
    become(tmux.attach_argv(Tmux(folder=workplace.folder), name), dict(os.environ))


def type_into(workplace: Workplace, name: str, text: str, *, enter: bool) -> TerminalInput:
    """Type into a terminal; without `takes_text`, a dialog appeared and Enter was not pressed."""
    server = Tmux(folder=workplace.folder)
    if not enter:
        tmux.send_text(server, name, text, enter=False)
        return TerminalInput(takes_text=True)
    dialog = enter_text(server, name, text)
    return TerminalInput(takes_text=dialog is None, dialog=dialog)


def shown_lines(workplace: Workplace, name: str, *, count: int) -> list[str]:
    """The last lines on the terminal's screen, with their colours."""
    shown = tmux.capture(Tmux(folder=workplace.folder), name, lines=count, colours=True)
    return shown.splitlines()


def find_screen(workplace: Workplace, task: str, *, count: int) -> tuple[str, ...] | None:
    """The last lines of the task's terminal, with their colours; None if it has none."""
    if not (workplace.folder / tmux.SOCKET).exists():
        return None
    try:
        return tuple(shown_lines(workplace, terminal_name(task), count=count))
    except NotFound:
        return None


def run_there(
    workplace: Workplace, argv: Sequence[str], variables: Mapping[str, str], *, folder: Path
) -> NoReturn:
    """Replace this process by a command that runs in a task's worktree.

    It works on the agent's files, so it is confined as a gate is, where this machine has a sandbox.
    In a session of its own it cannot type into the person's terminal.
    """
    mode: Sandbox = workplace.settings.sandbox.mode  # type: ignore[assignment]
    allowed = for_command(workplace, argv, folder, may_commit=True)
    wrapper = load_wrapper(mode, allowed)
    os.chdir(folder)
    if wrapper == Wrapper():
        become(argv, {**os.environ, **variables})
    environment = {**allowed_environment(os.environ), **variables}
    become(confined(argv, allowed, wrapper=wrapper, cwd=folder), environment)
