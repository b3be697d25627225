"""Doers of quests: check a role's work, run gates and reviews, write planned items as tasks."""

from collections.abc import Callable

from crew.domain.commands import Command
from crew.domain.kernel.fact import Fact
from crew.domain.quests.item_tasks import step_task
from crew.domain.quests.position import stage_of_run, stage_reviewers
from crew.domain.quests.quest_outcomes import items_written
from crew.domain.quests.quest_plan import next_to_write
from crew.domain.quests.stage_outcomes import (
    PROVING,
    gate_judged,
    must_have_commits,
    review_judged,
    role_finished,
)
from crew.domain.rows.quest import PlanItem, Quest
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.rows.workflow import Does, Stage
from crew.domain.runs.complaints import Evidence
from crew.domain.runs.run_outcomes import gated
from crew.domain.runs.verdicts import review_waits
from crew.domain.tasks.task_outcomes import worktree_lost
from crew.domain.world import World, apply_all
from crew.runner.doers.context import Context
from crew.runner.doers.evidence import Panel, ReviewerPaused, newest_base, notes_of, seen_at_once
from crew.runner.outside.outside import WorkSeen

Judge = Callable[[World, Run], list[Fact]]


async def check_stage(ctx: Context, command: Command) -> list[Fact]:
    """Check what a role left, then run the next gate or review on the same commit."""
    run, task = ctx.run(command)
    await ctx.outside.clear_locks(task)
    try:
        return await stage_checked(ctx, run, task)
    except ReviewerPaused:
        return _still(ctx, run, lambda world, now: review_waits(world, now, at=ctx.now()))


async def stage_checked(ctx: Context, run: Run, task: Task) -> list[Fact]:
    """As `check_stage`; raises if a reviewer is paused."""
    look = await ctx.outside.look_at(task)
    if look is None:
        return worktree_lost(task, at=ctx.now())
    here = stage_of_run(ctx.world(), run)
    is_role = here is None or here.does not in PROVING
    # Without a stage that takes work back, a conflict is resolved at the stage that proves it.
    evidence = await (_left(ctx, run, task, look) if is_role else seen_at_once(ctx, run, look))
    if evidence is not None:
        found = evidence
        facts = _still(
            ctx,
            run,
            lambda world, now: role_finished(world, now, found, rules=ctx.rules, at=ctx.now()),
        )
        if not is_role or not _needs_no_new_look(apply_all(ctx.world(), facts), run):
            return facts
        ctx.record(facts)
        here = stage_of_run(ctx.world(), run)
    return await _proven(ctx, run, task, here, look.head)


def _needs_no_new_look(world: World, run: Run) -> bool:
    """Whether the next stage is a gate or review: the worktree is unchanged since the last look."""
    if world.runs[run.id].state != RunState.REVIEWING or run.task not in world.positions:
        return False
    here = stage_of_run(world, world.runs[run.id])
    return here is not None and here.does in PROVING


async def _proven(ctx: Context, run: Run, task: Task, here: Stage | None, head: str) -> list[Fact]:
    if here is not None and here.does is Does.REVIEW:
        reviewers = stage_reviewers(ctx.world(), run)
        panel = Panel(reviewers=reviewers, needed=len(reviewers), asks_anew=True)
        notes = await notes_of(ctx, run, task, head, panel)
        return _still(
            ctx,
            run,
            lambda world, now: review_judged(world, now, notes=notes, head=head, at=ctx.now()),
        )
    gate = await ctx.outside.run_gate(head, task=task.id)
    is_same = gate.passed and await _is_same_work(ctx, task, head)
    return _still(
        ctx,
        run,
        lambda world, now: [
            *gated(world, now.task, gate.command, at=ctx.now()),
            *gate_judged(
                world,
                now,
                passed=gate.passed,
                output=gate.output,
                head=head,
                at=ctx.now(),
                is_same=is_same,
            ),
        ],
    )


async def _is_same_work(ctx: Context, task: Task, head: str) -> bool:
    """Whether the item had passed all its stages, and has only merged what landed since."""
    passed = ctx.world().positions[task.id].passed
    if not passed:
        return False
    landed = await newest_base(ctx, task.target)
    return await ctx.outside.only_merged(before=passed, head=head, landed=landed)


def _still(ctx: Context, run: Run, judge: Judge) -> list[Fact]:
    """Judge only if the task is still in progress: it may have been given up in the meantime."""
    world = ctx.world()
    now, task = world.runs[run.id], world.tasks[run.task]
    if now.state != RunState.REVIEWING or task.state != TaskState.IN_PROGRESS:
        return []
    return judge(world, now)


async def _left(ctx: Context, run: Run, task: Task, look: WorkSeen) -> Evidence:
    if found := await seen_at_once(ctx, run, look):
        return found
    base = await newest_base(ctx, task.target)
    empty = await ctx.outside.contains(ancestor=look.head, descendant=base)
    has_commits = not empty or not must_have_commits(ctx.world(), run)
    return Evidence(head=look.head, has_commits=has_commits)


async def write_items(ctx: Context, command: Command) -> list[Fact]:
    """Write the items as tasks, a few at a time, dependencies first; record each batch."""
    while True:
        world = ctx.world()
        quest = world.quests[command.subject]
        steps = next_to_write(world, quest)
        if not steps:
            return []
        ctx.record(await _told(ctx, quest, steps))


async def _told(ctx: Context, quest: Quest, steps: list[PlanItem]) -> list[Fact]:
    """Write these items in the order of the plan, so that their ids have the same order."""
    made = []
    for step in steps:
        wanted = step_task(ctx.world(), quest, step)
        made.append((step, await ctx.outside.tell_step(wanted)))
    return items_written(ctx.world(), quest.id, made, at=ctx.now())
