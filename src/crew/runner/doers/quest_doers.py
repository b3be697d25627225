"""do, for quests: look at what a role left, pass gates and reviews, make planned steps tasks."""

from collections.abc import Callable

from crew.domain.commands import Command
from crew.domain.kernel.fact import Fact
from crew.domain.quests.item_tasks import step_task
from crew.domain.quests.position import first_walk, workflow_of
from crew.domain.quests.quest_plan import next_to_tell, told_steps
from crew.domain.quests.stage_outcomes import (
    PROVING,
    gate_judged,
    must_have_commits,
    review_judged,
    role_finished,
    station,
)
from crew.domain.rows.quest import PlannedStep, Quest, QuestState
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.rows.workflow import Does, Stage
from crew.domain.runs.run_outcomes import Evidence, gated
from crew.domain.tasks.task_outcomes import Intake, seen_one
from crew.domain.world import Draft, World, apply_all, born
from crew.runner.doers.context import Desk
from crew.runner.doers.evidence import asked_for, newest_base, seen_at_once
from crew.runner.outside.outside import Look

Judge = Callable[[World, Run], list[Fact]]


async def walk_on(desk: Desk, run: Run, task: Task, look: Look) -> list[Fact]:
    """What a role left, then whatever proves it on the same commit; a role comes after that."""
    here = station(desk.world(), run)
    if here is None or here.does not in PROVING:
        evidence = await _left(desk, run, task, look)
        facts = _still(
            desk,
            run,
            lambda world, now: role_finished(world, now, evidence, rules=desk.rules, at=desk.now()),
        )
        if not _needs_no_new_look(apply_all(desk.world(), facts), run):
            return facts
        desk.record(facts)
        here = station(desk.world(), run)
    return await _proven(desk, run, task, here, look.head)


def _needs_no_new_look(world: World, run: Run) -> bool:
    """Nobody has touched the worktree in between: one look is enough for both."""
    if world.runs[run.id].state != RunState.REVIEWING or run.task not in world.walks:
        return False
    here = station(world, world.runs[run.id])
    return here is not None and here.does in PROVING


async def _proven(desk: Desk, run: Run, task: Task, here: Stage | None, head: str) -> list[Fact]:
    if here is not None and here.does is Does.REVIEW:
        notes = await _reviewed(desk, run, task, here, head)
        return _still(
            desk,
            run,
            lambda world, now: review_judged(world, now, notes=notes, head=head, at=desk.now()),
        )
    gate = await desk.outside.run_gate(head, task=task.id)
    return _still(
        desk,
        run,
        lambda world, now: [
            *gated(world, now.task, gate.command, at=desk.now()),
            *gate_judged(
                world, now, passed=gate.passed, output=gate.output, head=head, at=desk.now()
            ),
        ],
    )


def _still(desk: Desk, run: Run, judge: Judge) -> list[Fact]:
    """Time has passed: a task that was given up meanwhile is not led on."""
    world = desk.world()
    now, task = world.runs[run.id], world.tasks[run.task]
    if now.state != RunState.REVIEWING or task.state != TaskState.IN_PROGRESS:
        return []
    return judge(world, now)


async def _left(desk: Desk, run: Run, task: Task, look: Look) -> Evidence:
    if found := await seen_at_once(desk, run, look):
        return found
    base = await newest_base(desk, task.target)
    empty = await desk.outside.contains(ancestor=look.head, descendant=base)
    has_commits = not empty or not must_have_commits(desk.world(), run)
    return Evidence(head=look.head, has_commits=has_commits)


async def _reviewed(desk: Desk, run: Run, task: Task, here: Stage, head: str) -> str | None:
    roles = workflow_of(desk.world(), desk.world().walks[task.id]).roles
    agents = tuple(roles[name].agent or run.agent_kind for name in here.roles)
    return await asked_for(desk, run, task, head, reviewers=agents)


async def tell_steps(desk: Desk, command: Command) -> list[Fact]:
    """A few at a time, those first that others wait for; recorded once they are there."""
    while True:
        world = desk.world()
        quest = world.quests[command.subject]
        steps = next_to_tell(world, quest)
        if not steps:
            return []
        desk.record(await _told(desk, quest, steps))


async def _told(desk: Desk, quest: Quest, steps: list[PlannedStep]) -> list[Fact]:
    """In the order of the plan, which is then that of their ids too."""
    made = []
    for step in steps:
        wanted = step_task(desk.world(), quest, step)
        made.append((step, await desk.outside.tell_step(wanted)))
    draft = Draft(desk.world())
    now = draft.world.quests[quest.id]
    told = {step.key: item for step, item in made if step in now.steps}
    if now.state != QuestState.OPEN or not told:
        return []  # cancelled, or planned anew meanwhile
    draft.add(told_steps(now, {key: item.id for key, item in told.items()}, at=desk.now()))
    target = draft.world.tasks[quest.id].target
    for key, item in told.items():
        draft.add(*seen_one(draft.world, item, Intake(target=target, at=desk.now())))
        if item.id not in draft.world.walks:
            draft.add(born(first_walk(quest, item.id, key=key), "planned", at=desk.now()))
    return draft.facts
