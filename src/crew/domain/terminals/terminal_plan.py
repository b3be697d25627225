"""The part of the plan about terminal sessions: which is to be opened, closed or looked at."""

from collections.abc import Iterator

from crew.domain.commands import (
    ClosePane,
    Command,
    CommandKey,
    Inspect,
    OpenPane,
    PaneCommand,
    TakeOver,
    TellPane,
)
from crew.domain.rows.run import Leaving, Run, RunState
from crew.domain.rows.task import Task
from crew.domain.terminals.terminal_outcomes import is_over
from crew.domain.world import World


def plan_panes(world: World, *, busy: frozenset[CommandKey]) -> Iterator[Command]:
    for run in world.runs.values():
        if run.pane and (command := _for_pane(run, world.tasks[run.task])):
            # Whoever said `complete` gets an answer, although the session ended in the meantime.
            if run.leaving == Leaving.ENDED and Inspect(subject=run.id).key in busy:
                continue
            yield command(subject=run.id)


def _for_pane(run: Run, task: Task) -> type[PaneCommand | Inspect] | None:
    if run.agent is not None:
        return TakeOver
    if run.leaving or run.state == RunState.FAILED or is_over(run, task):
        return ClosePane
    if run.is_live and not run.is_pane_open:
        return OpenPane
    if run.untyped:
        return TellPane
    return Inspect if run.state == RunState.REVIEWING else None
