"""What people and roles ask of quests: begin one, cancel one, replace its plan."""

from collections.abc import Mapping

from crew.domain.kernel.errors import Conflict, NotFound, UsageError
from crew.domain.kernel.frozen import frozen
from crew.domain.quests.position import first_position, role_of, workflow_of
from crew.domain.quests.quest_outcomes import closed
from crew.domain.quests.quest_plan import faults, finished_steps, planners, read_steps, replaced
from crew.domain.requests import Answer, Asked, Verb, find_task, typed
from crew.domain.rows.quest import Quest, QuestState
from crew.domain.rows.step import SignalKind
from crew.domain.rows.task import TaskState
from crew.domain.rows.workflow import Role
from crew.domain.runs.run_ends import abandoned
from crew.domain.runs.speaking_run import Speaker, speaking_run
from crew.domain.world import World, born, noted

MOST_FAULTS = 50
LONGEST_FAULT = 200
"""How many faults of a plan one error lists, and the characters of each."""


@frozen
class BeginQuest:
    """`definition` is the workflow as text: a later change of its file means nothing to it."""

    task: str
    workflow: str
    definition: str
    slots: int


@frozen
class CancelQuest:
    quest: str
    reason: str = ""


@frozen
class PlanSteps(Speaker):
    """The steps are as the agent wrote them; `read_steps` explains what is wrong with them."""

    steps: object = None


def begin(asked: Asked[BeginQuest]) -> Answer:
    """Begin a quest for the task that holds the request, with its workflow as text."""
    task = find_task(asked.world, asked.request.task)
    if task.id in asked.world.quests or task.state != TaskState.TODO:
        raise Conflict(
            f"task {task.id} is {task.state} and no quest can begin with it",
            hint="`crew quest new` makes a task of its own for the request",
            code="task_taken",
        )
    quest = Quest(
        id=task.id,
        workflow=asked.request.workflow,
        definition=asked.request.definition,
        slots=asked.request.slots,
        created_at=asked.at,
    )
    return Answer(
        facts=(
            born(quest, "begun", at=asked.at),
            born(first_position(quest, task.id), "begun", at=asked.at),
            noted(task, "taken_into_quest", at=asked.at, quest=quest.id),
        ),
        reply=quest.id,
    )


def cancel(asked: Asked[CancelQuest]) -> Answer:
    """End all work on the quest, keep its results, and close all its tasks."""
    quest = find_quest(asked.world, asked.request.quest)
    if quest.state != QuestState.OPEN:
        how = f"`crew quest show {quest.id}` shows how it ended"
        raise Conflict(f"quest {quest.id} is {quest.state}", hint=how, code="quest_over")
    root = asked.world.tasks[quest.id]
    reason = asked.request.reason or "the quest was cancelled"
    facts = [closed(root, reason, at=asked.at), *abandoned(asked.world, root, at=asked.at)]
    return Answer(facts=tuple(facts), reply=quest.id)


def find_quest(world: World, quest: str) -> Quest:
    if quest not in world.quests:
        known = ", ".join(world.quests) or "none yet, `crew quest new` begins one"
        raise NotFound(f"there is no quest {quest!r}", hint=f"quests: {known}")
    return world.quests[quest]


def plan_items(asked: Asked[PlanSteps]) -> Answer:
    """Replace the plan of a quest with the items that its planning role sends."""
    world = asked.world
    run = speaking_run(world, asked.request)
    role = role_of(world, run)
    quest = world.quests[world.positions[run.task].quest] if role else None
    if role is None or quest is None or role.name not in planners(world, quest):
        who = planners(world, quest) if quest else ()
        raise Conflict(
            "only a role that plans may hand in a plan",
            hint=_who_plans(role, who),
            code="not_a_planner",
        )
    steps = read_steps(asked.request.steps)
    most = workflow_of(world, world.positions[run.task]).most_steps
    if found := list(faults(steps, most=most, finished=finished_steps(world, quest))):
        told = [fault[:LONGEST_FAULT] for fault in found[:MOST_FAULTS]]
        if len(found) > MOST_FAULTS:
            told.append(f"and {len(found) - MOST_FAULTS} more")
        raise UsageError(
            f"the plan has {len(found)} faults: {'; '.join(told)}",
            hint="fix all of them and hand in the whole plan again; nothing was changed",
            code="invalid_plan",
        )
    facts, kept = replaced(world, quest, steps, planned_in=run.task, at=asked.at)
    reply = f"{len(steps)} items are planned"
    if kept:
        reply += f"; {', '.join(kept)} are finished and stay as they are"
    return Answer(facts=tuple(facts), reply=reply)


def _who_plans(role: Role | None, planning: tuple[str, ...]) -> str:
    """What a role that may not plan can do instead, with a signal that it may send."""
    if role is None or not planning:
        return "no role plans here: do the task as it is"
    who = " or ".join(planning)
    if SignalKind.NEEDS_ROLE_FOLLOWUP in role.signals:
        return f"send needs-role-followup for {who}"
    return f"the plan is for {who}, which acts after you: do your own part and send complete"


VERBS: Mapping[str, Verb] = {
    "quest_new": typed(BeginQuest, begin),
    "quest_cancel": typed(CancelQuest, cancel),
    "plan_steps": typed(PlanSteps, plan_items),
}
