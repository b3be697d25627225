"""What follows when a merge queue was built, tested, landed or delivered."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.names import landed_ref
from crew.domain.kernel.quotation import LONGEST_NOTES, quoted
from crew.domain.lead import Leads
from crew.domain.merging.merge_reports import Assembled, Delivered, Rewrite, Tips
from crew.domain.merging.queue_search import learned_rate, tested
from crew.domain.merging.sent_back import conflicted, returned
from crew.domain.rows.merge_queue import (
    MOST_OFFERED,
    OVERTAKEN_LIMIT,
    Candidate,
    MergeQueue,
    TestResult,
)
from crew.domain.rows.run import Ask
from crew.domain.rows.task import Task, TaskState
from crew.domain.rules import Rules
from crew.domain.runs.gate import GateResult
from crew.domain.world import FactDraft, World, born, moved, noted

if TYPE_CHECKING:
    from crew.domain.row_changes import MergeQueueFields, TaskFields


def found(world: World, tips: Mapping[str, Tips], *, at: float) -> list[Fact]:
    """Make queues for targets whose landed work is in git and not in the database."""
    return [
        born(
            MergeQueue(
                id=target,
                integration=tip.integration,
                base=tip.integration,
                last_seen=tip.target if tip.has_target else "",
            ),
            "found",
            at=at,
        )
        for target, tip in tips.items()
        if target not in world.queues
    ]


def assembled(
    world: World, target: str, built: Assembled, *, leads: Leads, rules: Rules, at: float
) -> list[Fact]:
    """Record the queue as it was built; tasks that landed before or conflict leave it."""
    queue, draft = world.queues[target], FactDraft(world)
    draft.add(
        noted(
            queue,
            "assembled",
            at=at,
            integration=built.tips.integration,
            base=built.base,
            base_proven=built.proven,
            chain=built.chain,
            trials=built.trials,
            cleared=built.cleared,
            held=built.held,
            results=tuple(r for r in queue.results if r.commit in built.commits),
            target_seen=built.tips.target,
            offered=_offered(queue, built),
            upstream=False,
            placed=tuple(pair for pair in queue.placed if pair[1] in built.commits),
            **_obstacle(queue, built.waiting),
        )
    )
    for task, commit in built.landed:
        if world.tasks[task.id].target == target:
            draft.add(*_landed(world, Candidate(task.id, task.head, commit), target, at=at))
    for one in built.conflicts:
        if _still_waits(world, one.task, target):
            draft.add(*conflicted(draft.world, one, leads=leads, rules=rules, at=at))
    for task, reason in built.refused:
        if _still_waits(world, task, target):
            draft.add(
                *returned(
                    draft.world,
                    task.id,
                    ask=Ask.RED_GATE,
                    notes=quoted(f"it cannot be merged: {reason}"),
                    leads=leads,
                    rules=rules,
                    at=at,
                )
            )
    return draft.facts


def _offered(queue: MergeQueue, built: Assembled) -> tuple[str, ...]:
    """The commits that agents are asked to merge in place of the base, after a rewrite."""
    asked = (one.merge.theirs for one in built.conflicts if one.merge.theirs)
    return tuple(dict.fromkeys((*queue.offered, *asked)))[-MOST_OFFERED:]


class Obstacle(TypedDict, total=False):
    """The reason why a queue cannot be delivered, and what a person can do about it."""

    waiting: str
    remedy: str


def _obstacle(queue: MergeQueue, waiting: str) -> Obstacle:
    """The obstacle of this queue; its texts are empty if the queue can be delivered."""
    if waiting:
        return {"waiting": waiting, "remedy": f"git merge {landed_ref(queue.id)}"}
    return _outrun(queue) if queue.is_outrun else {"waiting": "", "remedy": ""}


def _outrun(queue: MergeQueue) -> Obstacle:
    return {
        "waiting": f"{queue.id} gets new commits before they are tested with what landed",
        "remedy": "make no commit there for as long as the gate takes",
    }


def _still_waits(world: World, task: Task, target: str) -> bool:
    found = world.tasks[task.id]
    return found.is_queued and (found.head, found.target) == (task.head, target)


def _landed(world: World, candidate: Candidate, target: str, *, at: float) -> list[Fact]:
    """Record that the task has landed there, also if it got another target at that moment."""
    task = world.tasks[candidate.task]
    if not task.is_queued or task.head != candidate.head:
        return []
    changes: TaskFields = {"landed_commit": candidate.commit}
    if task.target != target:
        changes["target"] = target
    return [noted(task, "landed", at=at, **changes)]


def candidate_tested(queue: MergeQueue, commit: str, gate: GateResult, *, at: float) -> list[Fact]:
    notes = "" if gate.passed else gate.output[-LONGEST_NOTES:]
    result = TestResult(commit=queue.name_of(commit), passed=gate.passed, times=1, notes=notes)
    return [noted(queue, "tested", at=at, results=tested(queue, result))]


def signed(queue: MergeQueue, placed: Mapping[str, str], *, at: float) -> list[Fact]:
    """Record the signed merges before one of them lands. Their content is what was tested.

    A trial keeps the commits that it was made on. Nothing of it lands before it is in the queue.
    """
    if not placed:
        return []
    chain = (one._replace(commit=placed.get(one.commit, one.commit)) for one in queue.chain)
    results = (one._replace(commit=placed.get(one.commit, one.commit)) for one in queue.results)
    before = ((old, placed.get(new, new)) for old, new in queue.placed)
    return [
        noted(
            queue,
            "signed",
            at=at,
            base=placed.get(queue.base, queue.base),
            chain=tuple(chain),
            results=tuple(results),
            placed=(*before, *placed.items()),
        )
    ]


def prefix_landed(world: World, queue: MergeQueue, length: int, *, at: float) -> list[Fact]:
    """Record that the first tasks of the queue landed; the others now build on them."""
    commit = queue.commit_at(length)
    later = {candidate.commit for candidate in queue.candidates[length:]}
    facts = [
        noted(
            queue,
            "landed",
            at=at,
            integration=commit,
            base=commit,
            base_proven=True,
            chain=queue.chain[length:],
            held=(),
            results=tuple(r for r in queue.results if r.commit in later),
            failure_rate=learned_rate(queue.failure_rate, passed=length),
        )
    ]
    for candidate in queue.candidates[:length]:
        facts += _landed(world, candidate, queue.id, at=at)
    return facts


def delivered(
    world: World,
    target: str,
    done: Delivered,
    *,
    arrived: Collection[str],
    at: float,
    **changes: "Unpack[MergeQueueFields]",
) -> list[Fact]:
    """Record that the target branch has the landed work, and mark the tasks merged.

    The remedy is how a person gets the files of a submodule that came with it. If the branch had
    everything before, this counts as no delivery, so the next one need not wait.
    """
    changes |= {"overtaken": 0, "waiting": "", "remedy": done.remedy}
    trigger = "found_delivered"
    if done.state == "delivered" or arrived:
        trigger, changes["delivered_at"] = "delivered", at
    return [
        noted(world.queues[target], trigger, at=at, **changes),
        *(moved(world.tasks[task], "delivered", to=TaskState.MERGED, at=at) for task in arrived),
    ]


_UNBUILT: "MergeQueueFields" = {
    "base_proven": True,
    "chain": (),
    "trials": (),
    "held": (),
    "cleared": (),
    "results": (),
}

_AS_NEW: "MergeQueueFields" = {
    **_UNBUILT,
    "integration": "",
    "base": "",
    "last_seen": "",
    "delivered": "",
    "delivered_at": None,
    "waiting": "",
    "remedy": "",
    "upstream": False,
    "overtaken": 0,
    "target_seen": "",
    "placed": (),
}


def target_deleted(world: World, target: str, *, arrived: Collection[str], at: float) -> list[Fact]:
    """Record that a person deleted the target and has all its landed work in other branches.

    Its queue is as new, since the person may make another branch of that name.
    """
    return [
        noted(world.queues[target], "target_deleted", at=at, **_AS_NEW),
        *(moved(world.tasks[task], "delivered", to=TaskState.MERGED, at=at) for task in arrived),
    ]


def target_rewritten(
    world: World, target: str, seen: Rewrite, *, delivered: Collection[str], at: float
) -> list[Fact]:
    """Record that a person rewrote the target: its queue starts from the target as it is.

    What had landed and was never delivered waits in the queue again. `delivered` are tasks whose
    delivery was not recorded before the person took their work out again.
    """
    queue, draft = world.queues[target], FactDraft(world)
    fields: MergeQueueFields = {
        **_AS_NEW,
        "integration": seen.now,
        "base": seen.now,
        "last_seen": seen.now,
        "delivered": seen.now,
        "delivered_at": queue.delivered_at,
        "target_seen": seen.now,
        "rewriting": "",
        "superseded": seen.superseded,
        "given_up": tuple(dict.fromkeys((*queue.given_up, queue.integration)))[-MOST_OFFERED:],
        "dropped": tuple(dict.fromkeys((*queue.dropped, *seen.dropped))),
        "rewritten_at": at,
    }
    draft.add(noted(queue, "rewritten", at=at, **fields))
    for task in delivered:
        draft.add(moved(world.tasks[task], "delivered", to=TaskState.MERGED, at=at))
    for task, _ in seen.dropped:
        draft.add(noted(draft.world.tasks[task], "dropped", at=at, dropped_at=at))
    left = [task for task in draft.world.tasks.values() if task.awaits_delivery]
    draft.add(*landings_lost((task for task in left if task.target == target), at=at))
    return draft.facts


def delivered_and_removed(world: World, tasks: Iterable[Task], *, at: float) -> list[Fact]:
    """Record a delivery that a person took back before it was recorded.

    `tasks` are as they were when it began; since then they were put into the queue again.
    """
    draft = FactDraft(world)
    for task in tasks:
        if _still_waits(world, task, task.target):
            landed = noted(world.tasks[task.id], "landed", at=at, landed_commit=task.landed_commit)
            draft.add(landed)
            draft.add(moved(draft.world.tasks[task.id], "delivered", to=TaskState.MERGED, at=at))
            draft.add(noted(draft.world.tasks[task.id], "dropped", at=at, dropped_at=at))
    return draft.facts


def target_seen(world: World, target: str, now: str, *, at: float) -> list[Fact]:
    """Record the target as it is, before anything is built on it."""
    queue = world.queues.get(target)
    if queue is None:
        return [born(MergeQueue(id=target, last_seen=now), "opened", at=at)]
    return [noted(queue, "target_seen", at=at, last_seen=now)]


def brought_back(world: World, target: str, tasks: Collection[str], *, at: float) -> list[Fact]:
    """Record that the target has work again that a person had taken out of it."""
    queue = world.queues[target]
    left = tuple(one for one in queue.dropped if one[0] not in tasks)
    return [
        noted(queue, "brought_back", at=at, dropped=left),
        *(noted(world.tasks[task], "brought_back", at=at, dropped_at=None) for task in tasks),
    ]


def target_renamed(world: World, old: str, new: str, *, at: float) -> list[Fact]:
    """Record that a person renamed the target: its queue and its tasks follow."""
    queue = world.queues.get(old)
    facts = [
        noted(task, "retargeted", at=at, target=new)
        for task in world.tasks.values()
        if task.target == old
    ]
    if queue is None:
        return facts
    if new not in world.queues:
        facts.append(born(replace(queue, id=new), "target_renamed", at=at, former=old))
    return [*facts, noted(queue, "target_renamed", at=at, **_AS_NEW)]


def rewrite_found(queue: MergeQueue, was: str, *, at: float) -> Fact:
    """The target lacks what it had. A kill may leave the integration ref at what it has now."""
    return noted(queue, "rewrite_found", at=at, rewriting=was)


def rewrite_noticed(queue: MergeQueue, *, at: float) -> Fact:
    """A person has seen which work a rewrite dropped; its entry leaves the inbox."""
    return noted(queue, "rewrite_seen", at=at, dropped=())


def outdated(queue: MergeQueue, *, at: float) -> list[Fact]:
    """Record that the queue must be built again: its base has commits that the target lost."""
    fields: MergeQueueFields = {**_UNBUILT, "base": queue.integration, "upstream": True}
    return [noted(queue, "outdated", at=at, **fields)]


def delivery_asked(queue: MergeQueue, *, at: float) -> Fact:
    """Deliver at once, even if the last delivery was just now or had everything."""
    fresh: MergeQueueFields = {"delivered": "", "delivered_at": None, "waiting": "", "remedy": ""}
    return noted(queue, "delivery_asked", at=at, **fresh)


def landings_lost(tasks: Iterable[Task], *, at: float) -> list[Fact]:
    """A person has set the integration ref back, so the tasks that it lost land again."""
    return [noted(task, "landing_lost", at=at, landed_commit="") for task in tasks]


def target_moved(queue: MergeQueue, tips: Tips, *, overtaken: int, at: float) -> list[Fact]:
    """The target has commits of others, which are tested together with landed work first."""
    if tips.target == queue.target_seen or queue.upstream:
        return []
    words: Obstacle = _outrun(queue) if overtaken >= OVERTAKEN_LIMIT else {}
    return [noted(queue, "diverged", at=at, upstream=True, overtaken=overtaken, **words)]


def delivery_held_up(queue: MergeQueue, done: Delivered, *, at: float) -> list[Fact]:
    """Record the obstacle once, no matter how often the delivery is tried."""
    if done.state == "diverged" or (queue.waiting, queue.remedy) == (done.reason, done.remedy):
        return []
    return [noted(queue, "delivery_waits", at=at, waiting=done.reason, remedy=done.remedy)]


def held_up(queue: MergeQueue, reason: str, remedy: str, *, at: float) -> list[Fact]:
    """Record why the queue makes no progress. It is tried again; other queues continue."""
    if (queue.waiting, queue.remedy) == (reason, remedy):
        return []
    return [noted(queue, "held_up", at=at, waiting=reason, remedy=remedy)]
