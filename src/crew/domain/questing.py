"""What follows for quests and walks from what happened to their tasks."""

from collections.abc import Iterator

from crew.domain.fact import Fact
from crew.domain.progress import abandoned
from crew.domain.quest import Quest, QuestState, StepState, Walk
from crew.domain.stations import steps_walked
from crew.domain.task import FINISHED, Task, TaskState
from crew.domain.whereabouts import acting
from crew.domain.world import World, moved

_GIVEN_BACK = frozenset({TaskState.TODO, TaskState.ERROR})
_INTERRUPTED = frozenset({StepState.IN_PROGRESS, StepState.WAITING_FOR_USER, StepState.BLOCKED})


def follow(world: World, at: float) -> list[Fact]:
    """What is so because of what happened to the tasks of quests."""
    for quest in world.quests.values():
        if quest.state != QuestState.OPEN:
            continue
        if facts := _ended(world, quest, at=at) or steps_walked(world, quest.id, at=at):
            return facts
    return [fact for walk in world.walks.values() for fact in _followed(world, walk, at=at)]


def _ended(world: World, quest: Quest, *, at: float) -> list[Fact]:
    root = world.tasks.get(quest.id)
    if root is None:
        return []
    if root.state == TaskState.MERGED:
        return [moved(quest, "landed", to=QuestState.COMPLETE, at=at)]
    if root.state == TaskState.CLOSED or root.gone:
        return [
            moved(quest, "cancelled", to=QuestState.CANCELLED, at=at),
            *_steps_closed(world, quest, at=at),
        ]
    return []


def _steps_closed(world: World, quest: Quest, *, at: float) -> Iterator[Fact]:
    for step in quest.steps:
        task = world.tasks.get(step.task)
        if task is not None and task.state not in FINISHED:
            yield closed(task, f"quest {quest.id} was cancelled", at=at)
            yield from abandoned(world, task, at=at)


def closed(task: Task, reason: str, *, at: float) -> Fact:
    return moved(task, "closed", to=TaskState.CLOSED, at=at, close_reason=reason, queued_at=None)


def _followed(world: World, walk: Walk, *, at: float) -> list[Fact]:
    """A walk is over with its task, waits with it, and goes on with whoever takes it up."""
    task = world.tasks.get(walk.task)
    if task is None or walk.is_over:
        return []
    if task.state == TaskState.MERGED and not walk.asker:
        trigger = "complete" if walk.state == StepState.IN_PROGRESS else "by_hand"
        return [moved(walk, trigger, to=StepState.COMPLETE, at=at, acting="")]
    if task.state in FINISHED or task.gone:
        return [moved(walk, "dropped", to=StepState.DROPPED, at=at)]
    if walk is not acting(world, walk.task):
        return []
    if task.state in _GIVEN_BACK and walk.state in _INTERRUPTED:
        return [moved(walk, "crashed", to=StepState.PENDING, at=at)]
    run = world.runs.get(task.run or "")
    if walk.state == StepState.PENDING and run is not None and run.is_live and run.agent:
        return [moved(walk, "slot_assigned", to=StepState.IN_PROGRESS, at=at)]
    return []
