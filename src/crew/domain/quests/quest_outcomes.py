"""What follows for quests and positions when their tasks are written, finished, closed or lost."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from crew.domain.kernel.fact import Fact
from crew.domain.quests.position import acting, first_position, is_left_out
from crew.domain.quests.quest_plan import left_out, tasks_recorded
from crew.domain.quests.stage_outcomes import plan_finished
from crew.domain.rows.quest import ItemState, PlanItem, Position, Quest, QuestState
from crew.domain.rows.task import Task, TaskState
from crew.domain.rows.task_item import TaskItem
from crew.domain.runs.run_ends import abandoned
from crew.domain.tasks.task_outcomes import Intake, seen_one
from crew.domain.world import FactDraft, World, born, moved, noted

if TYPE_CHECKING:
    from crew.domain.row_changes import PositionFields

_LOST = "its source does not have it any more"
_GIVEN_BACK = frozenset({TaskState.TODO, TaskState.ERROR})
_ASKING = frozenset({ItemState.WAITING_FOR_USER, ItemState.BLOCKED})
_INTERRUPTED = frozenset({ItemState.IN_PROGRESS, *_ASKING})


def items_written(
    world: World, quest: str, made: Sequence[tuple[PlanItem, TaskItem]], *, at: float
) -> list[Fact]:
    """Record that these items are tasks now.

    No facts if the quest was cancelled or planned again in the meantime.
    """
    draft = FactDraft(world)
    now = world.quests[quest]
    told = {item.key: task for item, task in made if item in now.steps}
    if now.state != QuestState.OPEN or not told:
        return []
    draft.add(tasks_recorded(now, {key: task.id for key, task in told.items()}, at=at))
    intake = Intake(target=world.tasks[quest].target, at=at)
    for key, task in told.items():
        draft.add(*seen_one(draft.world, task, intake))
        if task.id not in draft.world.positions:
            draft.add(born(first_position(now, task.id, key=key), "planned", at=at))
    return draft.facts


def follow(world: World, at: float) -> list[Fact]:
    """The facts about quests and positions that follow from the state of their tasks."""
    for quest in world.quests.values():
        if quest.state != QuestState.OPEN:
            continue
        if facts := _ended(world, quest, at=at) or plan_finished(world, quest.id, at=at):
            return facts
    left = [position for position in world.positions.values() if not position.is_over]
    if facts := _lost_closed(world, left, at=at) or _left_out_closed(world, left, at=at):
        return facts
    followed = [fact for position in left for fact in _followed(world, position, at=at)]
    return followed or _strays_closed(world, at=at)


def _lost_closed(world: World, positions: list[Position], *, at: float) -> list[Fact]:
    """Close the tasks of quests that are gone from their source, so that no item waits for them."""
    tasks = [world.tasks.get(position.task) for position in positions if not position.asker]
    return [
        fact
        for task in tasks
        if task is not None and task.gone and not task.is_over
        for fact in (closed(task, _LOST, at=at), *abandoned(world, task, at=at))
    ]


def _left_out_closed(world: World, positions: list[Position], *, at: float) -> list[Fact]:
    """Give up an item that its own planner left out, as soon as no follow-up acts in it."""
    for position in positions:
        task = world.tasks.get(position.task)
        if position.asker or task is None or task.is_over:
            continue
        if is_left_out(world, task.id) and not _is_followed_up(world, task):
            return left_out(world, task, at=at)
    return []


def _is_followed_up(world: World, task: Task) -> bool:
    """Whether a role that was asked for is at work in the task, or will go on there."""
    quest = world.quests[world.positions[task.id].quest]
    is_open = quest.state == QuestState.OPEN and task.state == TaskState.IN_PROGRESS
    return is_open and acting(world, task.id).asker != ""


def _strays_closed(world: World, *, at: float) -> list[Fact]:
    """Close tasks that were made for an item that the plan does not have any more."""
    return [
        closed(task, f"quest {task.quest} does not plan it any more", at=at)
        for task in world.tasks.values()
        if task.quest
        and not task.is_over
        and task.id not in world.positions
        and task.quest in world.quests
        and not is_telling(world.quests[task.quest])
    ]


def is_telling(quest: Quest) -> bool:
    """Whether an item of the plan is not a task yet."""
    return quest.state == QuestState.OPEN and any(not step.task for step in quest.steps)


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
        if task is not None and not task.is_over:
            yield closed(task, f"quest {quest.id} was cancelled", at=at)
            yield from abandoned(world, task, at=at)


def closed(task: Task, reason: str, *, at: float) -> Fact:
    return moved(task, "closed", to=TaskState.CLOSED, at=at, close_reason=reason, queued_at=None)


def _followed(world: World, position: Position, *, at: float) -> list[Fact]:
    """End a position together with its task, pause it and continue it with the task's run."""
    task = world.tasks.get(position.task)
    if task is None:
        return []
    if (task.state == TaskState.MERGED or task.awaits_delivery) and not position.asker:
        trigger = "complete" if position.state == ItemState.IN_PROGRESS else "by_hand"
        return [moved(position, trigger, to=ItemState.COMPLETE, at=at, acting="")]
    if task.is_over or task.gone:
        return [moved(position, "dropped", to=ItemState.DROPPED, at=at)]
    if task.state == TaskState.DONE and (position.asker or position.acting):
        return _finished_by_hand(position, str(world.runs[str(task.run)].role), at=at)
    return (
        _interrupted(world, position, task, at=at)
        if position is acting(world, position.task)
        else []
    )


def _finished_by_hand(position: Position, role: str, *, at: float) -> list[Fact]:
    """Drop the follow-ups of a task that a person completed, so that only its last role is left."""
    if position.asker:
        return [moved(position, "dropped", to=ItemState.DROPPED, at=at)]
    last: PositionFields = {"acting": "", "role": role}
    if position.state == ItemState.WAITING_FOR_ROLE:
        return [moved(position, "role_completed", to=ItemState.IN_PROGRESS, at=at, **last)]
    return [noted(position, "handed_back", at=at, **last)]


def _interrupted(world: World, position: Position, task: Task, *, at: float) -> list[Fact]:
    """Return the acting position to pending when its run stops; restart it with an agent."""
    run = world.runs.get(task.run or "")
    if task.state in _GIVEN_BACK and position.state in _INTERRUPTED:
        return [moved(position, "crashed", to=ItemState.PENDING, at=at)]
    if position.state in _ASKING and (run is None or not run.question):
        return [moved(position, "crashed", to=ItemState.PENDING, at=at)]
    if position.state == ItemState.PENDING and run is not None and run.is_live and run.agent:
        return [moved(position, "slot_assigned", to=ItemState.IN_PROGRESS, at=at)]
    return []
