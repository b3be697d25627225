"""Finds the tasks that are at a terminal, fast enough for lists, and records their screens."""

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
    """The runs at open terminals, by task; what changed there unnoticed is recorded first."""
    if not (folder / SOCKET).exists():
        return {}
    terminals = load_terminals(db)
    if record_ends(folder, terminals):
        terminals = load_terminals(db)
    runs = find_runs(db, [one.id for one in terminals]) if terminals else {}
    return {run.task: run for run in runs.values()}


def record_ends(folder: Path, terminals: "list[Terminal]") -> bool:
    """Record ends without a report, and the dialogs that terminals show.

    False if nothing changed, or if another writer, such as the runner, is active.
    """
    from crew.runner.terminals.dead_terminals import ended_unnoticed  # noqa: PLC0415 - most lists have no session

    if not terminals or find_holder(folder / "lock") is not None:
        return False
    if not ended_unnoticed(terminals) and not _screens_changed(folder):
        return False
    from crew.domain.requests import Request  # noqa: PLC0415 - only once a session has died
    from crew.runner.requests.ask_crew import ask  # noqa: PLC0415
    from crew.workplace import Workplace  # noqa: PLC0415

    try:
        ask(Workplace(root=folder.parent), Request(verb="look", args={}))
    except (CrewError, OSError):  # the list must be printed even if the disk is full or read-only
        return False
    return True


def _screens_changed(folder: Path) -> bool:
    """Whether a terminal shows or has closed a dialog, or takes text again."""
    from crew.runner.terminals.terminal_input import terminal_looks  # noqa: PLC0415
    from crew.store.fact_log import load_world  # noqa: PLC0415
    from crew.workplace import Workplace  # noqa: PLC0415

    workplace = Workplace(root=folder.parent)
    try:
        return bool(terminal_looks(workplace, load_world(workplace.db), at=0.0))
    except (CrewError, OSError):
        return False
    finally:
        workplace.db.close()
