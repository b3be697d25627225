"""The plan for terminals: which to open, type into, check or close."""

from collections.abc import Iterator

from crew.domain.commands import (
    AnswerDialog,
    CloseTerminal,
    Command,
    CommandKey,
    Inspect,
    OpenTerminal,
    TakeOver,
    TerminalCommand,
    TypeIntoTerminal,
)
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.terminal import Leaving, Terminal, TerminalState
from crew.domain.runs.message_outcomes import queued_for
from crew.domain.terminals.dialogs import to_be_entered
from crew.domain.terminals.terminal_outcomes import is_over
from crew.domain.world import World


def plan_terminals(world: World, *, busy: frozenset[CommandKey]) -> Iterator[Command]:
    for terminal in world.terminals.values():
        if not terminal.is_up:
            continue
        run = world.runs[terminal.id]
        command = _for_terminal(world, terminal, run)
        # `crew complete` gets its answer even if the terminal ended in the meantime.
        is_waited_for = terminal.leaving == Leaving.ENDED and Inspect(subject=run.id).key in busy
        if command is not None and not is_waited_for:
            yield command(subject=run.id)


def _for_terminal(
    world: World, terminal: Terminal, run: Run
) -> type[TerminalCommand | Inspect] | None:
    task = world.tasks[run.task]
    if run.agent is not None:
        return TakeOver
    is_leaving = terminal.state == TerminalState.LEAVING
    if is_leaving or run.state == RunState.FAILED or is_over(run, task):
        return CloseTerminal
    if run.is_live and not terminal.is_open:
        return OpenTerminal
    if to_be_entered(world, terminal):
        return AnswerDialog
    if _has_words(world, terminal):
        return TypeIntoTerminal
    return Inspect if run.state == RunState.REVIEWING else None


def _has_words(world: World, terminal: Terminal) -> bool:
    """Whether there is something to type, and no dialog or other hindrance is known."""
    if not terminal.is_open or terminal.held or terminal.dialog:
        return False
    return terminal.untyped or bool(queued_for(world, terminal.task))
