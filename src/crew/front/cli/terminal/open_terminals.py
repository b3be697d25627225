"""The tasks that are at a terminal, for lists: found at little cost, and as they really are."""

from pathlib import Path
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import CrewError
from crew.store.quick_rows import find_runs, load_terminals
from crew.store.runner_lock import find_holder

if TYPE_CHECKING:
    from crew.domain.rows.run import Run
    from crew.domain.rows.terminal import Terminal
    from crew.store.database import Database

SOCKET = "tmux.sock"
"""Where there never was a server there is no session to look for."""


def runs_at_terminals(folder: Path, db: "Database") -> "dict[str, Run]":
    """By task; what ended without a word is recorded first, if nobody else is about to."""
    if not (folder / SOCKET).exists():
        return {}
    terminals = load_terminals(db)
    if record_ends(folder, terminals):
        terminals = load_terminals(db)
    runs = find_runs(db, [one.id for one in terminals]) if terminals else {}
    return {run.task: run for run in runs.values()}


def record_ends(folder: Path, terminals: "list[Terminal]") -> bool:
    """Whether anything was recorded; whoever holds the lock looks for such ends by itself."""
    from crew.runner.outside.dead_terminals import ended_unnoticed  # noqa: PLC0415 - most lists have no session

    if not ended_unnoticed(terminals) or find_holder(folder / "lock") is not None:
        return False
    from crew.domain.requests import Request  # noqa: PLC0415 - only once a session has died
    from crew.runner.requests.ask_crew import ask  # noqa: PLC0415
    from crew.workplace import Workplace  # noqa: PLC0415

    try:
        ask(Workplace(root=folder.parent), Request(verb="look", args={}))
    except (CrewError, OSError):  # a list must come, also from a disk that is full or read-only
        return False
    return True
