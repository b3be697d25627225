"""The council stage of a quest: open its channel, wait for the decision, route the task."""

import functools
from itertools import count
from typing import TYPE_CHECKING

from crew.domain.channels.channel_draft import ChannelDraft
from crew.domain.channels.membership import NewMember, close, opened
from crew.domain.channels.posts import shortened
from crew.domain.kernel.fact import Fact
from crew.domain.quests.position import role_in, stage_named, stages_of, workflow_of
from crew.domain.quests.role_entry import blocked, story
from crew.domain.quests.stage_outcomes import council_judged
from crew.domain.rows.channel import Channel, Interrupting, member_id
from crew.domain.rows.quest import Position
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.task import TaskState
from crew.domain.rows.workflow import Does, from_text
from crew.domain.world import FactDraft, World, noted

if TYPE_CHECKING:
    from crew.domain.row_changes import PositionFields

_GIVEN_BACK = frozenset({TaskState.TODO, TaskState.ERROR})

_LONGEST_ID = 18
"""The characters of a task's id that fit into the name of its council."""


def follow_councils(world: World, at: float) -> list[Fact]:
    """Open a council when a task reaches it, and close it when it has ended or no task waits."""
    for channel in world.channels.values():
        if is_awaited(channel) and not _is_task_waiting(world, channel):
            return _closed(world, channel.id, at=at)
    if not any(_holds_councils(quest.definition) for quest in world.quests.values()):
        return []
    for position in world.positions.values():
        if not _is_at_council(world, position):
            continue
        if world.tasks[position.task].state in _GIVEN_BACK:
            return _broken_off(world, position, at=at)
        run = _waiting(world, position)
        if run is not None and (facts := _followed(world, position, run, at=at)):
            return facts
    return []


@functools.lru_cache(maxsize=64)
def _holds_councils(definition: str) -> bool:
    workflow = from_text(definition)
    return any(one.does is Does.COUNCIL for one in (*workflow.stages, *workflow.step_stages))


def _is_task_waiting(world: World, channel: Channel) -> bool:
    """Whether the task of this council still waits for it."""
    position, task = world.positions.get(channel.task), world.tasks.get(channel.task)
    if position is None or position.is_over or position.council != channel.id:
        return False
    return task is not None and not task.gone and not task.is_over


def _is_at_council(world: World, position: Position) -> bool:
    if position.asker or position.is_over or position.task not in world.tasks:
        return False
    return stage_named(world, position, position.stage).does is Does.COUNCIL


def _broken_off(world: World, position: Position, *, at: float) -> list[Fact]:
    """Close the council of a stopped task.

    The next run starts with the role before the council.
    """
    stages = stages_of(workflow_of(world, position), position)
    leading = (one for one in stages if role_in(one) and position.stage in one.routes.values())
    before = next(leading, stages[0])
    there: PositionFields = {"stage": before.name, "role": role_in(before), "council": ""}
    draft = FactDraft(world)
    draft.add(*_closed(world, position.council, at=at))
    draft.add(noted(position, "council_broken_off", at=at, **there))
    return draft.facts


def _closed(world: World, name: str, *, at: float) -> list[Fact]:
    """Close the channel; no facts if it is closed already or was never opened."""
    if name not in world.channels or not world.channels[name].is_open:
        return []
    draft = ChannelDraft(world, name, at=at)
    close(draft)
    return draft.facts


def _free_name(world: World, task: str) -> str:
    """A new channel name for each time that a task reaches a council."""
    names = (f"council-{task[:_LONGEST_ID]}-{number}" for number in count(1))
    return next(name for name in names if name not in world.channels)


def is_awaited(channel: Channel) -> bool:
    """Whether a task waits for the decision of this council."""
    return bool(channel.task) and channel.is_open


def _waiting(world: World, position: Position) -> Run | None:
    """The run that waits at this position for a council."""
    run = world.runs.get(world.tasks[position.task].run or "")
    if run is None or run.state != RunState.REVIEWING or run.agent:
        return None
    return None if world.terminal_of(run.id) else run


def _followed(world: World, position: Position, run: Run, *, at: float) -> list[Fact]:
    channel = world.channels.get(position.council)
    if channel is None:
        return _convened(world, position, run, at=at)
    members = [world.members[member_id(channel.id, name)] for name in channel.members]
    if channel.is_open and not channel.decision:
        lost = not any(member.takes_part for member in members)
        return _ended(world, run, channel, at=at, is_lost=True) if lost else []
    return _ended(world, run, channel, at=at)


def _convened(world: World, position: Position, run: Run, *, at: float) -> list[Fact]:
    here, roles = stage_named(world, position, position.stage), workflow_of(world, position).roles
    members = [
        NewMember(name=role, agent_kind=roles[role].agent or run.agent_kind) for role in here.roles
    ]
    channel = Channel(
        id=_free_name(world, position.task),
        topic=_topic(world, position),
        rounds=here.rounds,
        interrupting=Interrupting.QUEUE,
        council=True,
        task=position.task,
        opened_at=at,
    )
    return [
        *opened(world, channel, members, at=at),
        noted(position, "council_convened", at=at, council=channel.id),
    ]


def _topic(world: World, position: Position) -> str:
    """The topic of the council: the request or the item, the plan, and the story."""
    task, quest = world.tasks[position.task], world.quests[position.quest]
    steps = [
        f"- {step.key}: {step.title}" + (f" (after {', '.join(step.deps)})" if step.deps else "")
        for step in quest.steps
    ]
    plan = "The plan:\n" + "\n".join(steps) if steps and not position.key else ""
    parts = (task.title, plan, story(world, position.task))
    return shortened("\n\n".join(part for part in parts if part))


def _ended(
    world: World, run: Run, channel: Channel, *, at: float, is_lost: bool = False
) -> list[Fact]:
    """Close the council and route its task.

    A council that a person closed without a decision counts as agreed.
    """
    draft = FactDraft(world)
    draft.add(*_closed(world, channel.id, at=at))
    draft.add(noted(world.positions[run.task], "council_ended", at=at, council=""))
    agreed = channel.agreed if channel.decision else not is_lost
    words = channel.decision or f"{channel.id} ended without a decision"
    draft.add(*council_judged(draft.world, run, agreed=agreed, words=words, at=at))
    now = draft.world.runs[run.id]
    if is_lost and not now.question:
        reason = f"no member could speak in {channel.id}"
        draft.add(*blocked(draft.world, now, reason, at=at))
    return draft.facts
