"""Finds the tasks that are at a terminal, fast enough for lists; records unreported ends."""

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
"""Without this file no terminal was ever opened."""


def runs_at_terminals(folder: Path, db: "Database") -> "dict[str, Run]":
    """The runs at open terminals, by task; ends without a report are recorded first."""
    if not (folder / SOCKET).exists():
        return {}
    terminals = load_terminals(db)
    if record_ends(folder, terminals):
        terminals = load_terminals(db)
    runs = find_runs(db, [one.id for one in terminals]) if terminals else {}
    return {run.task: run for run in runs.values()}


def record_ends(folder: Path, terminals: "list[Terminal]") -> bool:
    """Record ends without a report; False if there are none, or if another writer is active."""
    from crew.runner.outside.dead_terminals import ended_unnoticed  # noqa: PLC0415 - most lists have no session

    if not ended_unnoticed(terminals) or find_holder(folder / "lock") is not None:
        return False
    from crew.domain.requests import Request  # noqa: PLC0415 - only once a session has died
    from crew.runner.requests.ask_crew import ask  # noqa: PLC0415
    from crew.workplace import Workplace  # noqa: PLC0415

    try:
        ask(Workplace(root=folder.parent), Request(verb="look", args={}))
    except (CrewError, OSError):  # the list must be printed even if the disk is full or read-only
        return False
    return True
