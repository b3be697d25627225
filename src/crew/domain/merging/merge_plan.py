"""The plan for merge queues: build, test, land, deliver, and send back the task that breaks one."""

from collections.abc import Iterator

from crew.domain.clock import Clock
from crew.domain.commands import (
    Assemble,
    Command,
    CommandKey,
    CommandKind,
    Deliver,
    Land,
    TestCandidate,
)
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.names import landed_ref, task_of_branch
from crew.domain.kernel.quotation import quoted
from crew.domain.lead import Leads
from crew.domain.merging.queue_search import (
    commits_to_test,
    culprit,
    learned_rate,
    needs_layout,
    prefix_to_land,
)
from crew.domain.merging.sent_back import returned
from crew.domain.rows.agent import AT_WORK
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.run import Ask
from crew.domain.rows.task import Task
from crew.domain.rules import Rules
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.world import World, born, noted


def new_queues(world: World, now: float) -> list[Fact]:
    """A queue for each target that a task waits for."""
    targets = {task.target for task in world.tasks.values() if task.is_queued}
    return [born(MergeQueue(id=t), "opened", at=now) for t in sorted(targets - world.queues.keys())]


def send_back(world: World, now: float, *, leads: Leads, rules: Rules) -> list[Fact]:
    """Send the first task that makes its queue red back to its session."""
    blamed = (
        _send_back_culprit(world, one, leads=leads, rules=rules, now=now)
        for one in world.queues.values()
    )
    return next((facts for facts in blamed if facts), [])


def _send_back_culprit(
    world: World, queue: MergeQueue, *, leads: Leads, rules: Rules, now: float
) -> list[Fact]:
    found = culprit(queue)
    if found is None or queue.upstream or not _is_current(world, queue):
        return []
    candidate, result = found
    if candidate is None:
        return _red_base(queue, now)
    worse = noted(
        queue, "blamed", at=now, failure_rate=learned_rate(queue.failure_rate, failed=1), held=()
    )
    return [
        worse,
        *returned(
            world,
            candidate.task,
            ask=Ask.RED_GATE,
            notes=quoted(result.notes),
            leads=leads,
            rules=rules,
            at=now,
        ),
    ]


def _red_base(queue: MergeQueue, now: float) -> list[Fact]:
    """Record that commits of others and landed work merge cleanly, but fail the gate together."""
    reason = f"{queue.id} and what crew landed are red together"
    if queue.waiting == reason:
        return []
    remedy = f"bring them together and commit: git merge {landed_ref(queue.id)}"
    return [noted(queue, "base_red", at=now, waiting=reason, remedy=remedy)]


def queued_tasks(world: World, target: str) -> list[Task]:
    """The tasks that wait for this target, the longest waiting first."""
    waiting = [t for t in world.tasks.values() if t.is_queued and t.target == target]
    return sorted(waiting, key=lambda task: (task.queued_at or 0.0, task.id))


def _is_current(world: World, queue: MergeQueue) -> bool:
    """Whether every task in the queue still waits for it with the commit that was merged."""
    found = ((one, world.tasks.get(one.task)) for one in queue.candidates)
    return all(
        task is not None and task.is_queued and (task.head, task.target) == (one.head, queue.id)
        for one, task in found
    )


def plan_queues(
    world: World,
    clock: Clock,
    *,
    rules: Rules,
    busy: frozenset[CommandKey],
    scope: Scope = EVERYTHING,
) -> Iterator[Command]:
    """The commands for the queues; `busy` are the keys of the commands under way."""
    for queue in world.queues.values():
        yield from _queue_work(world, queue, rules=rules, busy=busy)
        if _should_deliver(world, queue, clock, rules=rules, scope=scope):
            yield Deliver(subject=queue.id)


def _queue_work(
    world: World, queue: MergeQueue, *, rules: Rules, busy: frozenset[CommandKey]
) -> Iterator[Command]:
    waiting = queued_tasks(world, queue.id)[: rules.longest_queue]
    current = _is_current(world, queue)
    if current and prefix_to_land(queue) is not None:
        yield Land(subject=queue.id)
    elif (
        queue.upstream
        or frozenset((t.id, t.head) for t in waiting) != queue.entries
        or needs_layout(queue, rules=rules)
    ):
        yield Assemble(subject=queue.id)
    if current and (queue.candidates or not queue.base_proven):
        tests = (key for key in busy if key.kind == CommandKind.TEST and key.subject == queue.id)
        under_test = frozenset(queue.name_of(key.commit) for key in tests)
        for commit in commits_to_test(queue, rules, busy=under_test):
            yield TestCandidate(subject=queue.id, commit=commit)


def _should_deliver(
    world: World, queue: MergeQueue, clock: Clock, *, rules: Rules, scope: Scope
) -> bool:
    """Whether to deliver now: many landings at once while more of them are to be expected here."""
    is_current = queue.delivered == queue.integration and not undelivered(world, queue.id)
    if is_current or queue.upstream:
        return False
    working = any(
        agent.run and agent.state in AT_WORK and scope.has_task(agent.task or "")
        for agent in world.agents.values()
    )
    working = working or any(task.is_queued for task in world.tasks.values())
    if not working or queue.delivered_at is None:
        return True
    pause_s = rules.deliver_every_s if queue.is_shown else 0.0
    return clock.has_come(queue.delivered_at + pause_s, CommandKind.DELIVER)


def is_crews(world: World, target: str) -> bool:
    """Whether the target is the branch of a task, such as a quest's: crew itself moves it.

    Its agents may amend there, and must not remove the work of others: what landed is the truth.
    """
    return task_of_branch(target) in world.tasks


def undelivered(world: World, target: str) -> list[Task]:
    """The landed tasks of this target whose work is not in the target branch yet."""
    return [t for t in world.tasks.values() if t.awaits_delivery and t.target == target]
