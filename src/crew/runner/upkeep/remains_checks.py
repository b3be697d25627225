"""The checks of `crew doctor` on locks and half-made files that killed processes left."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crew.domain.kernel.names import landed_ref
from crew.domain.upkeep.findings import Finding
from crew.git.delivery.landed_refs import REPAIR, damaged_targets, landed_tips, restore_landed
from crew.git.killed_remains import (
    clear_crews_locks,
    crews_locks,
    half_made,
    persons_locks,
    places_of_git,
    sweep_half_made,
)
from crew.runner.writer_lock import holding_the_lock
from crew.store.fact_log import load_world
from crew.store.runner_lock import find_runner
from crew.system.processes.git_processes import have_gits_ended

if TYPE_CHECKING:
    from crew.workplace import Workplace

PATIENCE_S = 2.0
_SHOWN = 3
_REPAIR = "`crew doctor --repair` removes it; so does the next `crew run`"


def locks(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    """Locks of git that block crew or the person, and whose git has ended."""
    repo = workplace.repo
    left = _stale(workplace, crews_locks(repo))
    if left and repair and find_runner(workplace.lock_file) is None:
        with holding_the_lock(workplace):
            clear_crews_locks(repo, patience_s=PATIENCE_S)
        message = f"removed {len(left)} lock{'s' * (len(left) > 1)} that a killed git left"
        yield Finding(check="locks", message=message, is_repaired=True)
        left = ()
    for lock in left:
        message = f"a killed git left {lock} {_age(lock)} ago"
        yield Finding(check="locks", message=message, fix=_REPAIR, is_wrong=True)
    persons = _stale(workplace, persons_locks(repo, {workplace.target, *landed_tips(repo)}))
    for lock in persons:
        yield Finding(
            check="locks",
            message=f"{lock} was left {_age(lock)} ago and blocks git in your checkout, "
            "and no git command runs there",
            fix=f"rm {_quoted(lock)}",
            is_wrong=True,
        )
    if not left and not persons:
        yield Finding(check="locks", message="no lock of a killed git blocks the repository")


def landed_refs(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    """The refs that hold what landed, which a power failure may damage."""
    damaged = damaged_targets(workplace.repo)
    if damaged and repair and find_runner(workplace.lock_file) is None:
        queues = load_world(workplace.db).queues.values()
        with holding_the_lock(workplace):
            restore_landed(workplace.repo, {queue.id: queue.integration for queue in queues})
        message = f"restored {', '.join(landed_ref(target) for target in damaged)}"
        yield Finding(check="landed refs", message=message, is_repaired=True)
        return
    for target in damaged:
        message = f"{landed_ref(target)} is damaged"
        yield Finding(check="landed refs", message=message, fix=REPAIR, is_wrong=True)
    if not damaged:
        yield Finding(check="landed refs", message="the refs of landed work can be read")


def leftovers(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    """Files that a killed crew or its git was about to rename or delete."""
    repo = workplace.repo
    found = half_made(repo, workplace.worktrees)
    if not found or find_runner(workplace.lock_file) is not None:  # a runner's files are in use
        yield Finding(check="leftovers", message="no half-made file was left behind")
    elif repair:
        with holding_the_lock(workplace):
            sweep_half_made(repo, workplace.worktrees)
        left = half_made(repo, workplace.worktrees)
        yield Finding(
            check="leftovers",
            message=f"deleted {len(found) - len(left)} half-made files and folders",
            is_repaired=True,
        )
    else:
        names = ", ".join(str(path) for path in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        yield Finding(
            check="leftovers",
            message=f"a killed crew left half-made files: {names}{more}",
            fix="`crew doctor --repair` deletes them; so does the next `crew run`",
            is_wrong=True,
        )


def _stale(workplace: "Workplace", locks: tuple[Path, ...]) -> tuple[Path, ...]:
    """The locks whose git process has ended; none while a process that may hold them runs."""
    if not locks or not have_gits_ended(places_of_git(workplace.repo), patience_s=PATIENCE_S):
        return ()
    return tuple(lock for lock in locks if lock.exists())


def _age(lock: Path) -> str:
    """How old a lock is, in its largest unit."""
    try:
        seconds = max(0, int(time.time() - lock.lstat().st_mtime))
    except OSError:
        seconds = 0
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = seconds // length
            return f"{count} {unit}{'s' * (count > 1)}"
    return f"{seconds} s"


def _quoted(path: Path) -> str:
    import shlex  # noqa: PLC0415 - slow to load, and locks are rare

    return shlex.quote(str(path))
