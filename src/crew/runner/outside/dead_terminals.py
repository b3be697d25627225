"""Finds terminal sessions that ended without a word, as when their server was killed."""

import os
from collections.abc import Iterable

from crew.domain.kernel.fact import Fact
from crew.domain.rows.run import Run
from crew.domain.terminals.terminal_outcomes import ended
from crew.domain.world import World
from crew.system.processes.ownership import find_process


def pane_ends(world: World, *, at: float) -> list[Fact]:
    """The ends of terminal sessions that ended without a word."""
    gone = ended_unnoticed(world.runs.values())
    return [f for run in gone for f in ended(run, number=run.pane_number, code=None, at=at)]


def ended_unnoticed(runs: Iterable[Run]) -> list[Run]:
    """The runs whose terminal session has no process any more, of which nobody told us."""
    return [
        run for run in runs if run.pane_pid is not None and not run.leaving and not _is_alive(run)
    ]


def _is_alive(run: Run) -> bool:
    pid = run.pane_pid or 0
    found = find_process(pid)
    if found is None and find_process(os.getpid()) is None:
        return _has_process(pid)  # there is no /proc: the number alone must do
    return found is not None and found.started == run.pane_started


def _has_process(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
