"""What follows for tasks when their source was read or written, or their worktree was removed."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from crew.domain.clock import Clock
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import Task, TaskState
from crew.domain.rows.task_item import TaskItem, quest_of
from crew.domain.runs.run_ends import abandoned
from crew.domain.world import World, born, moved, noted

if TYPE_CHECKING:
    from crew.domain.field_groups import SourceFields

_ADOPTED = {
    (TaskState.TODO, TaskState.CLOSED): "closed",
    (TaskState.IN_PROGRESS, TaskState.CLOSED): "closed",
    (TaskState.DONE, TaskState.CLOSED): "closed",
    (TaskState.ERROR, TaskState.CLOSED): "closed",
    (TaskState.ERROR, TaskState.TODO): "reopened",
}
"""The moves that a person may make in the source; crew overwrites all others."""

_AT_WORK = frozenset({TaskState.IN_PROGRESS, TaskState.DONE})

GIVEN_UP_AFTER_S = 3600.0
"""How long a file may be missing, as on another branch, until its task is gone."""


@frozen
class Intake:
    """The defaults for tasks that are read: the target branch and the time."""

    target: str
    at: float


def seen(world: World, items: Iterable[TaskItem], intake: Intake) -> list[Fact]:
    """The facts that update the world to the tasks of the source."""
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


def begun_again(world: World, items: Iterable[TaskItem], intake: Intake) -> list[Fact]:
    """Make the rows again that a damaged database lost of tasks that were at work.

    Their source has the state of that time, in which no agent would take them up.
    """
    lost = [item for item in items if item.id not in world.tasks and item.status in _AT_WORK]
    return [_new(item, intake, state=TaskState.TODO) for item in lost]


def written(task: Task, state: str, *, at: float) -> list[Fact]:
    """Record the state that was written to the source."""
    return [noted(task, "written", at=at, written=state)]


def worktree_lost(task: Task, *, at: float) -> list[Fact]:
    return [noted(task, "worktree_lost", at=at, worktree="")]


def worktree_reset(task: Task, *, at: float) -> list[Fact]:
    return [noted(task, "worktree_removed", at=at, worktree="")]


def worktree_cleaned(task: Task, *, at: float) -> list[Fact]:
    """Record that the worktree was removed, on request or because the task has ended."""
    return [noted(task, "worktree_removed", at=at, worktree="", cleaning=False)]


def give_up(world: World, clock: Clock) -> list[Fact]:
    """Mark tasks as gone after they were missing for a while; finished ones at once.

    No runner stays up to see whether a missing task comes back.
    """
    return [
        noted(task, "gone", at=clock.now, gone=True, missing_at=None)
        for task in world.tasks.values()
        if task.missing_at is not None and clock.has_come(_given_up_at(task, task.missing_at), None)
    ]


def _given_up_at(task: Task, missing_at: float) -> float:
    return missing_at + (0.0 if task.is_over else GIVEN_UP_AFTER_S)


def _new(item: TaskItem, intake: Intake, *, state: str = "") -> Fact:
    task = Task(
        id=item.id,
        state=state or item.status,
        written=item.status,
        created_at=item.created or 0.0,
        **_fields(item, intake),
    )
    return born(task, "seen", at=intake.at)


def _fields(item: TaskItem, intake: Intake) -> "SourceFields":
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
    """As `seen`, for one task that was just made or changed."""
    task = world.tasks.get(item.id)
    return [_new(item, intake)] if task is None else _changed(world, task, item, intake)


def _changed(world: World, task: Task, item: TaskItem, intake: Intake) -> list[Fact]:
    values = _fields(item, intake)
    if item.corrupt is not None:
        values = {"corrupt": True, "missing_at": None, "gone": False}
    else:
        values = _while_at_work(task, values)
    changes = {name: value for name, value in values.items() if getattr(task, name) != value}
    facts = [_edited(task, changes, at=intake.at)] if changes else []
    if item.corrupt is None and item.status != task.written:
        facts += _status_edited(world, task, item, intake)
    return facts


def _while_at_work(task: Task, values: "SourceFields") -> "SourceFields":
    """The values that apply while there is work: an agent may have edited the task's file.

    The target of a branch and of landed work stays: `crew edit --base` asks for another. The
    review can be asked for but not dropped.
    """
    if task.target and (task.branch or task.is_over):
        values.pop("target")
    if task.is_at_work and values["skip_review"] is not False:
        values.pop("skip_review")
    return values


def _edited(task: Task, changes: Mapping[str, object], *, at: float) -> Fact:
    return Fact(kind=task.kind, subject=task.id, trigger="edited", at=at, changes=changes)


def _status_edited(world: World, task: Task, item: TaskItem, intake: Intake) -> list[Fact]:
    trigger = _ADOPTED.get((TaskState(task.state), TaskState(item.status)))
    if trigger is None or task.state != task.written or task.awaits_delivery:
        return [noted(task, "read", at=intake.at, written=item.status)]
    adopted = moved(task, trigger, to=item.status, at=intake.at, written=item.status)
    return [adopted, *abandoned(world, task, at=intake.at)]
