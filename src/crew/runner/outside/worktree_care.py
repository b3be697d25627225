"""Repairs a task's worktree around its steps, and looks again only if its files of git changed."""

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from crew.git.repository import Repository
from crew.git.worktrees import stale_locks, worktrees
from crew.system.processes.git_processes import have_gits_ended

log = logging.getLogger(__name__)

LOCK_PATIENCE_S = 5.0
"""How long to wait for a live git process before its locks are left alone."""


class Repaired(NamedTuple):
    """Whether a repair found no lock, and whether it took all commits of the agent in."""

    has_no_locks: bool
    is_taken_in: bool


@dataclass(slots=True)
class WorktreeCare:
    repo: Repository
    _in_order: dict[Path, object] = field(default_factory=dict)

    def is_in_order(self, path: Path, branch: str) -> bool:
        """Whether nothing changed since the last repair, which left no lock."""
        stamp = self._in_order.get(path)
        return stamp is not None and stamp == stale_locks.order_stamp(self.repo, path, branch)

    def repair(self, path: Path, branch: str) -> Repaired:
        """Repair the worktree's repository, and remove git's locks of dead processes.

        A live git may be a person's, or be left of a step that ended.
        """
        self.forget(path)
        is_taken_in = worktrees.heal(self.repo, path)
        locks = stale_locks.locks_in(self.repo, path, branch=branch)
        for lock in locks:
            if _is_dead(lock, stale_locks.places_of(self.repo, path, lock)):
                stale_locks.clear_stale_locks(self.repo, path, [lock])
        # A git that held a lock may have committed until it ended.
        return Repaired(has_no_locks=not locks, is_taken_in=is_taken_in and not locks)

    def note_order(self, path: Path, branch: str) -> None:
        """Remember the worktree as it is now: repaired, without locks, and without processes."""
        self._in_order[path] = stale_locks.order_stamp(self.repo, path, branch)

    def forget(self, path: Path) -> None:
        """Look again after a process of the task has run, whatever the stamp is then."""
        self._in_order.pop(path, None)


def _is_dead(lock: Path, places: tuple[Path, ...]) -> bool:
    is_dead = have_gits_ended(places, patience_s=LOCK_PATIENCE_S)
    log.info("%s %s", lock, "was left by a git that was killed" if is_dead else "is in use")
    return is_dead
