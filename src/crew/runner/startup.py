"""The repairs of a start, in the order in which they run.

There is no recovery mode. After a kill the world outside and the rows may disagree in the ways that
are listed here; once they agree again, crew plans as after any other fact. Each repair may be
repeated, and does nothing when there is nothing to repair.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from crew.domain.kernel.frozen import frozen
from crew.domain.merging import merge_outcomes
from crew.domain.merging.merge_plan import is_crews
from crew.domain.merging.merge_reports import Tips
from crew.domain.provider_limits import all_retried
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.runs.verdicts import reviews_lost
from crew.git.delivery.deleted_targets import is_over
from crew.git.delivery.delivery import repair_sync
from crew.git.delivery.landed_refs import landed_tips, restore_landed
from crew.git.delivery.rewrites import is_rewritten
from crew.git.repository import ref_tip
from crew.store.request_queue import drop_requests
from crew.system.processes.ownership import kill_leftovers

if TYPE_CHECKING:
    from crew.runner.runner import Runner
    from crew.workplace import Workplace

T = TypeVar("T")


@frozen
class Repair(Generic[T]):
    """One repair, and why it is needed."""

    act: Callable[[T], object]
    why: str
    in_thread: bool = False
    """For a repair that takes long and reads no database."""


def _restore_landed(runner: Runner) -> None:
    queues = runner.engine.world.queues.values()
    restore_landed(runner.workplace.repo, {queue.id: queue.integration for queue in queues})


def _find_landed(runner: Runner) -> None:
    repo, landed = runner.workplace.repo, landed_tips(runner.workplace.repo)
    branches = {target: ref_tip(repo, f"refs/heads/{target}") for target in landed}
    tips = {
        target: Tips(
            integration=tip, target=branches[target] or tip, has_target=bool(branches[target])
        )
        for target, tip in landed.items()
    }
    runner.engine.record(merge_outcomes.found(runner.engine.world, tips, at=time.time()))
    queues = runner.engine.world.queues
    asked = [
        merge_outcomes.delivery_asked(queues[target], at=time.time())
        for target, tip in landed.items()
        if is_over(repo, target, tip) or _is_rewritten(runner, queues[target])
    ]
    runner.engine.record(asked)


def _is_rewritten(runner: Runner, queue: MergeQueue) -> bool:
    is_persons = not is_crews(runner.engine.world, queue.id)
    return is_persons and is_rewritten(runner.workplace.repo, queue.id, queue.last_known)


def _try_kinds_again(runner: Runner) -> None:
    runner.engine.record(all_retried(runner.engine.world, at=time.time()))


def _count_killed_reviews(runner: Runner) -> None:
    tasks = runner.outside.reviews.killed()
    runner.engine.record(reviews_lost(runner.engine.world, tasks, at=time.time()))


AFTER_A_KILL: tuple[Repair[Workplace], ...] = (
    Repair(
        act=lambda workplace: kill_leftovers(workplace.repo_id),
        why="processes of a killed writer still run, and would change what is planned next",
    ),
    Repair(
        act=lambda workplace: repair_sync(workplace.repo),
        why="a delivery was killed half-way through the files of a person's checkout",
    ),
)
"""Run by every writer that follows a killed one, and by every runner, before rows are read."""

BEFORE_ROWS: tuple[Repair[Workplace], ...] = (
    Repair(
        act=lambda workplace: drop_requests(workplace.db),
        why="a request to a dead runner is stale; a process that still waits for it sends it again",
    ),
)
"""Run by a runner only, before rows are read."""

BEFORE_PLAN: tuple[Repair[Runner], ...] = (
    Repair(
        act=lambda runner: runner.take_in(),
        why="people and programs changed tasks while no runner was up",
    ),
    Repair(
        act=_restore_landed,
        why="a power failure may leave an empty ref, and the record has where crew put it",
    ),
    Repair(
        act=_find_landed,
        why="git knows what has landed, even if the database was lost: it must still be delivered",
    ),
    Repair(
        act=lambda runner: runner.look_at_terminals(),
        why="a terminal ended and could not report it, as when the tmux server was killed",
    ),
    Repair(
        act=_try_kinds_again,
        why="a person who fixed a login or a program starts the runner again",
    ),
    Repair(
        act=lambda runner: runner.readers.welcome(),
        why="members of channels could not reach crew: their time limits begin now",
    ),
    Repair(
        act=_count_killed_reviews,
        why="a review that was killed did not report what it cost",
    ),
    Repair(
        act=lambda runner: runner.outside.sweep(),
        why="a killed runner left worktrees of reviews, spare worktrees and locks on its own refs",
        in_thread=True,
    ),
)
"""Run by a runner that has loaded its rows, before the first plan."""


def repair_after_kill(workplace: Workplace) -> None:
    for repair in AFTER_A_KILL:
        repair.act(workplace)


def repair_before_rows(workplace: Workplace) -> None:
    for repair in BEFORE_ROWS:
        repair.act(workplace)


async def repair_before_plan(runner: Runner) -> None:
    for repair in BEFORE_PLAN:
        if repair.in_thread:
            await asyncio.to_thread(repair.act, runner)
        else:
            repair.act(runner)
