"""Reads the last lines of what an agent did for a task, as people read them."""

from collections.abc import Iterable
from pathlib import Path

from crew.domain.kernel.log_entry import LogEntry
from crew.front.entry_lines import EntryLine, entry_lines
from crew.runner.views.read_log import last_items
from crew.workplace import Workplace


def read_last_lines(root: Path, task: str, *, count: int) -> list[EntryLine]:
    """The last lines of the task's log; none before it has one."""
    log = Workplace(root=root).task_log(task)
    try:
        return last_items(log, count, _all_lines)
    except OSError:
        return []


def _all_lines(entries: Iterable[LogEntry]) -> list[EntryLine]:
    return [line for entry in entries for line in entry_lines(entry)]
