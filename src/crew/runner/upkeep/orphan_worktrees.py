"""Finds and removes crew's worktrees that belong to no task any more."""

from pathlib import Path
from typing import TYPE_CHECKING

from crew.domain.requests import Request
from crew.git.worktrees.worktree_list import worktree_paths
from crew.runner.requests.ask_crew import ask
from crew.runner.upkeep.keep_and_remove import keep_and_remove
from crew.runner.writer_lock import holding_the_lock
from crew.store.fact_log import load_world

if TYPE_CHECKING:
    from crew.workplace import Workplace

LABEL = "belonged to no task"


def find_orphans(workplace: "Workplace") -> list[Path]:
    """The orphaned worktrees, without those of gates, which belong to no task."""
    known = {item.id for item in workplace.snapshot().items}
    return [
        path
        for path in worktree_paths(workplace.repo)
        if path.is_relative_to(workplace.worktrees)
        and path.name not in known
        and not path.name.startswith(".")
    ]


def remove_orphans(workplace: "Workplace", paths: list[Path]) -> None:
    """Remove each after a checkpoint; a worktree that a row names needs a request, with facts."""
    rows = load_world(workplace.db).tasks
    if named := [path.name for path in paths if path.name in rows]:
        ask(workplace, Request(verb="prune", args={"tasks": named}))
    with holding_the_lock(workplace):
        for path in find_orphans(workplace):
            if path in paths:
                keep_and_remove(workplace, path, label=LABEL)
