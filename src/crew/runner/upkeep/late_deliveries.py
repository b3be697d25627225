"""Finds landed work that its target branch does not contain yet, and delivers it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import landed_ref
from crew.domain.merging.merge_plan import is_crews
from crew.domain.merging.merge_plan import undelivered as undelivered_tasks
from crew.domain.requests import Request
from crew.domain.world import World
from crew.git.delivery.deleted_targets import is_over
from crew.git.delivery.landed_refs import landed_tips
from crew.git.delivery.rewrites import is_rewritten
from crew.git.merges.merges import contains
from crew.git.repository import ref_tip
from crew.runner.requests.ask_crew import LANDING, ask
from crew.store.fact_log import load_world

if TYPE_CHECKING:
    from crew.workplace import Workplace


@frozen
class Late:
    """The work that a target branch lacks, and the command that delivers it."""

    what: str
    fix: str


def undelivered(workplace: "Workplace") -> dict[str, Late]:
    """Late work by target branch, from git and the store; either is enough."""
    world, tips = load_world(workplace.db), landed_tips(workplace.repo)
    late = [target for target, tip in tips.items() if _is_late(workplace, world, target, tip)]
    recorded = [task.target for task in world.tasks.values() if task.awaits_delivery]
    waiting = [queue.id for queue in world.queues.values() if queue.waiting]
    targets = sorted({*late, *recorded, *waiting})
    return {target: _late(workplace, world, target, tips.get(target)) for target in targets}


def _is_late(workplace: "Workplace", world: World, target: str, landed: str) -> bool:
    """Whether the branch lacks landed work; a person may delete or rewrite it after a delivery."""
    branch = ref_tip(workplace.repo, f"refs/heads/{target}")
    queue = world.queues.get(target)
    if branch is not None:
        seen = "" if queue is None or is_crews(world, target) else queue.last_known
        if is_rewritten(workplace.repo, target, seen):
            return False  # a person decided what it contains
        return not contains(workplace.repo, ancestor=landed, descendant=branch)
    was_delivered = queue is not None and queue.delivered == landed
    return not was_delivered and not is_over(workplace.repo, target, landed)


def _late(workplace: "Workplace", world: World, target: str, landed: str | None) -> Late:
    queue = world.queues.get(target)
    tasks = [task.id for task in undelivered_tasks(world, target)]
    what = f"task{'s' * (len(tasks) > 1)} {', '.join(tasks)}" if tasks else landed_ref(target)
    if queue is None or not queue.waiting:
        return Late(what=what, fix=_REPAIR)
    if is_over(workplace.repo, target, landed or queue.integration):
        return Late(what=what, fix=_REPAIR)
    return Late(what=f"{what} ({queue.waiting})", fix=queue.remedy or _REPAIR)


_REPAIR = "`crew doctor --repair` delivers it; so does the next `crew run`"


def deliver_all(workplace: "Workplace", targets: Iterable[str]) -> None:
    """Deliver to each of these branches, as `crew merge` would."""
    for target in targets:
        ask(workplace, Request(verb="deliver", args={"target": target}), only=LANDING)
