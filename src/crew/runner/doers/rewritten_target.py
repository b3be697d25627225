"""Starts from the target branch as it is when a person has rewritten it."""

from collections.abc import Iterable

from crew.domain.merging import merge_outcomes
from crew.domain.merging.merge_plan import is_crews
from crew.domain.merging.merge_reports import MergeResult
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.task import Task, TaskState
from crew.runner.doers.context import Context


async def follow_target(ctx: Context, target: str, *, had: str = "") -> bool:
    """Look at the target before anything is built on it. Record what is new there.

    True if a person rewrote or renamed it: then its queue has changed, and perhaps the target of
    its tasks. `had` is a commit that the target had and lacks now.
    """
    if is_crews(ctx.world(), target):
        return False
    tips, queue = await ctx.outside.tips(target), ctx.world().queues.get(target)
    last, now = queue.last_known if queue else "", tips.target
    was = had or (queue.rewriting if queue else "")
    if tips.renamed_to and not await _lacks(ctx, tips.renamed_tip, last):
        await ctx.outside.rename_target(target, tips.renamed_to)
        new, at = tips.renamed_to, ctx.now()
        ctx.record(merge_outcomes.target_renamed(ctx.world(), target, new, at=at))
        return True
    if not tips.has_target or (now == last and not was):
        return False
    if queue is not None and (was or await _lacks(ctx, now, last)):
        await _follow(ctx, queue, was=was or last, now=now)
        return True
    if ctx.world().queues.get(target) == queue:  # otherwise another command looked as well
        ctx.record(merge_outcomes.target_seen(ctx.world(), target, now, at=ctx.now()))
        await _note_brought_back(ctx, target, now)
    return False


async def _lacks(ctx: Context, tip: str, commit: str) -> bool:
    return commit != "" and not await ctx.outside.contains(ancestor=commit, descendant=tip)


async def newest_seen(ctx: Context, target: str, commit: str) -> str:
    """The newest commit that crew saw in the target: this one, or the recorded one."""
    last = ctx.world().queues[target].last_known
    is_newer = not last or await ctx.outside.contains(ancestor=last, descendant=commit)
    return commit if is_newer else last


async def _follow(ctx: Context, queue: MergeQueue, *, was: str, now: str) -> None:
    if queue.rewriting != was:
        ctx.record([merge_outcomes.rewrite_found(queue, was, at=ctx.now())])
        queue = ctx.world().queues[queue.id]
    landed = [one for one in ctx.world().tasks.values() if _landed_on(one, queue.id)]
    late = await contained(ctx, (one for one in landed if one.awaits_delivery), was)
    waiting = [one for one in landed if one.awaits_delivery and one not in late]
    delivered = [one for one in landed if one not in waiting]
    seen = await ctx.outside.supersede(
        queue, was=was, now=now, delivered=delivered, waiting=waiting
    )
    if ctx.world().queues[queue.id] == queue:  # otherwise something landed: look again
        arrived = [one.id for one in late]
        facts = merge_outcomes.target_rewritten(
            ctx.world(), queue.id, seen, delivered=arrived, at=ctx.now()
        )
        ctx.record(facts)
        await _note_brought_back(ctx, queue.id, now)


def _landed_on(task: Task, target: str) -> bool:
    """Whether its work landed for this target, and the target is not known to lack it."""
    is_there = task.state == TaskState.MERGED or task.awaits_delivery
    return is_there and bool(task.landed_commit) and task.target == target and not task.dropped_at


async def _note_brought_back(ctx: Context, target: str, now: str) -> None:
    """Record dropped work that the target has again, as after `git reset --hard ORIG_HEAD`."""
    tasks = [one for one in ctx.world().tasks.values() if one.dropped_at and one.target == target]
    if back := await contained(ctx, tasks, now):
        ids = [task.id for task in back]
        ctx.record(merge_outcomes.brought_back(ctx.world(), target, ids, at=ctx.now()))


async def contained(ctx: Context, tasks: Iterable[Task], tip: str) -> list[Task]:
    """The landed tasks whose work this commit has."""
    contains = ctx.outside.contains
    return [one for one in tasks if await contains(ancestor=one.landed_commit, descendant=tip)]


async def replay(
    ctx: Context, head: str, *, onto: str, target: str, favours: str = ""
) -> MergeResult:
    """The work to merge: `head`, or its own commits made again without what a person removed."""
    queue = ctx.world().queues.get(target)
    if queue is None or not queue.superseded:
        return MergeResult(commit=head)
    return await ctx.outside.replay(head, onto=onto, queue=queue, favours=favours)
