"""Finds terminal sessions that ended without a word, as when their server was killed."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from crew.agents.ownership import find_process

if TYPE_CHECKING:
    from crew.domain.run import Run


def ended_unnoticed(runs: "Iterable[Run]") -> "list[Run]":
    """The runs whose terminal session has no process any more, of which nobody told us."""
    return [
        run for run in runs if run.pane_pid is not None and not run.leaving and not _is_alive(run)
    ]


def _is_alive(run: "Run") -> bool:
    found = find_process(run.pane_pid or 0)
    return found is not None and found.started == run.pane_started
