"""What people ask of merge queues: merge a done task, deliver landed work."""

from collections.abc import Mapping

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.merging.merge_outcomes import delivery_asked
from crew.domain.requests import Answer, Asked, Verb, find_task, typed
from crew.domain.rows.task import FINISHED, Task, TaskState
from crew.domain.tasks.readiness import SHOW, no_commit
from crew.domain.world import World, noted


@frozen
class MergeTask:
    """`head` is the commit to merge, if it is not the one that the task ended with."""

    task: str
    head: str = ""


@frozen
class DeliverTarget:
    target: str


@frozen
class Look:
    """No argument: the runner that answers checks what is due."""


def merge(asked: Asked[MergeTask]) -> Answer:
    """Put a done task into the queue; a task that waits or has landed is tried again."""
    task = find_task(asked.world, asked.request.task)
    if task.awaits_delivery:
        return Answer(facts=_delivery_asked(asked.world, task.target, at=asked.at), reply=task.id)
    if task.state != TaskState.DONE:
        hint = accept_hint(asked.world, task) or SHOW
        raise Conflict(f"task {task.id} is {task.state}, not done", hint=hint)
    if task.conflict:
        raise waits_for_answer(task)
    head = asked.request.head or task.head
    if not head:
        raise Conflict(f"task {task.id} cannot be merged: {no_commit(task)}", hint=SHOW)
    if task.is_queued and task.head == head:
        return Answer(facts=_tried_again(asked.world, task, at=asked.at), reply=task.id)
    queued = noted(task, "queued", at=asked.at, head=head, queued_at=asked.at)
    return Answer(facts=(queued,), reply=task.id)


def refused_merge(world: World, task: Task) -> str:
    """The commit with a merge that drops a part of one side, which a person may accept now."""
    run = world.runs.get(task.run or "")
    if run is None or task.state in {*FINISHED, TaskState.DONE}:
        return ""
    return "" if run.merge_accepted == run.merge_refused else run.merge_refused


def accept_hint(world: World, task: Task) -> str:
    commit = refused_merge(world, task)
    if not commit:
        return ""
    return f"`crew merge {task.id} --accept` takes its merge {commit[:12]} as it is"


def waits_for_answer(task: Task) -> Conflict:
    return Conflict(
        f"task {task.id} waits for the answer to question {task.conflict}",
        hint=f"`crew inbox {task.conflict}` shows it with its choices",
        code="waits_for_answer",
    )


def _tried_again(world: World, task: Task, *, at: float) -> tuple[Fact, ...]:
    """Compare a queue that was held up with its target anew: a person may have cleared the way."""
    queue = world.queues.get(task.target)
    return (delivery_asked(queue, at=at),) if queue is not None and queue.waiting else ()


def deliver(asked: Asked[DeliverTarget]) -> Answer:
    """Compare this target branch with its landed work, even if it had all of it before."""
    target = asked.request.target
    return Answer(facts=_delivery_asked(asked.world, target, at=asked.at), reply=target)


def _delivery_asked(world: World, target: str, *, at: float) -> tuple[Fact, ...]:
    """Deliver at once, even if the last delivery was just now."""
    queue = world.queues.get(target)
    return () if queue is None else (delivery_asked(queue, at=at),)


def look(asked: Asked[Look]) -> Answer:  # noqa: ARG001 - every verb is asked in the same way
    """No facts: the runner that answers checks what is due, such as a delivery."""
    return Answer()


VERBS: Mapping[str, Verb] = {
    "merge": typed(MergeTask, merge),
    "deliver": typed(DeliverTarget, deliver),
    "look": typed(Look, look),
}
