"""Finds terminals that ended without a report, as when their tmux server was killed."""

import os
from collections.abc import Iterable

from crew.domain.kernel.fact import Fact
from crew.domain.rows.terminal import Terminal
from crew.domain.terminals.terminal_outcomes import ended
from crew.domain.world import World
from crew.system.processes.ownership import find_process


def terminal_ends(world: World, *, at: float) -> list[Fact]:
    """The facts about terminals that ended without a report."""
    gone = ended_unnoticed(world.terminals.values())
    return [f for one in gone for f in ended(world, one.id, number=one.number, code=None, at=at)]


def ended_unnoticed(terminals: Iterable[Terminal]) -> list[Terminal]:
    """The terminals whose first process is gone, although no end was reported."""
    return [one for one in terminals if one.pid is not None and not one.leaving and not _lives(one)]


def _lives(terminal: Terminal) -> bool:
    pid = terminal.pid or 0
    found = find_process(pid)
    if found is None and find_process(os.getpid()) is None:
        return _has_process(pid)  # without /proc, the pid alone must suffice
    return found is not None and found.started == terminal.started


def _has_process(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
