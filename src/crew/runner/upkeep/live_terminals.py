"""Ends live terminals before their worktrees are removed, and those that no row names."""

from typing import TYPE_CHECKING

from crew.agents.terminal.tmux import LiveSession, Tmux, close_session, live_sessions
from crew.domain.kernel.names import terminal_name
from crew.runner.manager import TERMINAL
from crew.runner.terminals.terminal_input import terminal_marker
from crew.store.fact_log import load_world
from crew.system.processes.ownership import find_process, kill_leftovers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crew.workplace import Workplace


def live_terminals(workplace: "Workplace") -> tuple[LiveSession, ...]:
    """Every session on crew's own tmux server, whether a row names it or not."""
    return tuple(live_sessions(Tmux(folder=workplace.folder)).values())


def stray_terminals(workplace: "Workplace") -> tuple[LiveSession, ...]:
    """The sessions that no row names, such as those of a database that was lost."""
    found = live_terminals(workplace)
    if not found:
        return ()
    world = load_world(workplace.db)
    known = {terminal.name for terminal in world.terminals.values() if terminal.is_up}
    if world.managers:
        known.add(TERMINAL)
    strays = [session for session in found if session.name not in known]
    # One that has just been closed had a row when it was listed.
    still = {session.name for session in live_terminals(workplace)} if strays else set()
    return tuple(session for session in strays if session.name in still)


def close_all_terminals(workplace: "Workplace") -> None:
    """End all terminals, the manager's too, and the processes that left their terminal."""
    close_terminals(workplace, live_terminals(workplace))
    kill_leftovers(terminal_marker(workplace, ""))


def close_terminal_of(workplace: "Workplace", task: str) -> None:
    """End the terminal of a task, if it is open."""
    name = terminal_name(task)
    close_terminals(workplace, (one for one in live_terminals(workplace) if one.name == name))


def close_terminals(workplace: "Workplace", sessions: "Iterable[LiveSession]") -> None:
    """End these sessions with their processes, by the marker that each was opened with."""
    for session in sessions:
        top = find_process(session.pid)
        marker = (top.marker if top else "") or terminal_marker(workplace, session.name)
        close_session(Tmux(folder=workplace.folder), session.name, marker=marker)
