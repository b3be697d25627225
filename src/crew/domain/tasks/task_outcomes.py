"""What follows for tasks: their source was read or written, or their worktree is gone."""

from collections.abc import Iterable
from typing import Any

from crew.domain.clock import Clock
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import Task, TaskState
from crew.domain.rows.task_item import TaskItem, quest_of
from crew.domain.runs.run_ends import abandoned
from crew.domain.world import World, born, moved, noted

_ADOPTED = {
    (TaskState.TODO, TaskState.CLOSED): "closed",
    (TaskState.IN_PROGRESS, TaskState.CLOSED): "closed",
    (TaskState.DONE, TaskState.CLOSED): "closed",
    (TaskState.ERROR, TaskState.CLOSED): "closed",
    (TaskState.ERROR, TaskState.TODO): "reopened",
}
"""What a person may do to a task that has not landed; anything else crew writes over."""

GIVEN_UP_AFTER_S = 3600.0
"""How long a file may be away, as while another branch is checked out, until its task is gone."""


@frozen
class Intake:
    """How a source's words become crew's: the default target and when it was read."""

    target: str
    at: float


def seen(world: World, items: Iterable[TaskItem], intake: Intake) -> list[Fact]:
    """The facts that bring the world up to what the source says."""
    facts: list[Fact] = []
    present = set()
    for item in items:
        present.add(item.id)
        task = world.tasks.get(item.id)
        facts += [_new(item, intake)] if task is None else _changed(world, task, item, intake)
    for task in world.tasks.values():
        if task.id not in present and task.is_there:
            facts.append(noted(task, "missing", at=intake.at, missing_at=intake.at))
    return facts


def written(task: Task, state: str, *, at: float) -> list[Fact]:
    """The source has the state that the task had when it was written."""
    return [noted(task, "written", at=at, written=state)]


def worktree_lost(task: Task, *, at: float) -> list[Fact]:
    return [noted(task, "worktree_lost", at=at, worktree="")]


def worktree_reset(task: Task, *, at: float) -> list[Fact]:
    return [noted(task, "worktree_removed", at=at, worktree="")]


def worktree_cleaned(task: Task, *, at: float) -> list[Fact]:
    """It was removed because a person asked for that, or because the task is over."""
    return [noted(task, "worktree_removed", at=at, worktree="", cleaning=False)]


def give_up(world: World, clock: Clock) -> list[Fact]:
    """Tasks that stayed away so long that they must have been removed; finished ones at once.

    No runner stays up to see whether a missing task comes back.
    """
    return [
        noted(task, "gone", at=clock.now, gone=True, missing_at=None)
        for task in world.tasks.values()
        if task.missing_at is not None and clock.has_come(_given_up_at(task, task.missing_at), None)
    ]


def _given_up_at(task: Task, missing_at: float) -> float:
    return missing_at + (0.0 if task.is_over else GIVEN_UP_AFTER_S)


def _new(item: TaskItem, intake: Intake) -> Fact:
    task = Task(
        id=item.id,
        state=item.status,
        written=item.status,
        created_at=item.created or 0.0,
        **_fields(item, intake),
    )
    return born(task, "seen", at=intake.at)


def _fields(item: TaskItem, intake: Intake) -> dict[str, Any]:
    return {
        "title": item.title,
        "deps": item.deps,
        "priority": item.priority,
        "wants_agent": item.agent,
        "target": item.base or intake.target,
        "issue": item.issue,
        "skip_review": item.skip_review,
        "terms": item.terms,
        "corrupt": item.corrupt is not None,
        "quest": quest_of(item),
        "missing_at": None,
        "gone": False,
    }


def seen_one(world: World, item: TaskItem, intake: Intake) -> list[Fact]:
    """The same for a task that was just made or changed; the others are left as they are."""
    task = world.tasks.get(item.id)
    return [_new(item, intake)] if task is None else _changed(world, task, item, intake)


def _changed(world: World, task: Task, item: TaskItem, intake: Intake) -> list[Fact]:
    values = _fields(item, intake)
    if item.corrupt is not None:
        values = {"corrupt": True, "missing_at": None, "gone": False}
    elif task.branch:
        values.pop("target")
    changes = {name: value for name, value in values.items() if getattr(task, name) != value}
    facts = [noted(task, "edited", at=intake.at, **changes)] if changes else []
    if item.corrupt is None and item.status != task.written:
        facts += _status_edited(world, task, item, intake)
    return facts


def _status_edited(world: World, task: Task, item: TaskItem, intake: Intake) -> list[Fact]:
    trigger = _ADOPTED.get((TaskState(task.state), TaskState(item.status)))
    if trigger is None or task.state != task.written or task.awaits_delivery:
        return [noted(task, "read", at=intake.at, written=item.status)]
    adopted = moved(task, trigger, to=item.status, at=intake.at, written=item.status)
    return [adopted, *abandoned(world, task, at=intake.at)]
