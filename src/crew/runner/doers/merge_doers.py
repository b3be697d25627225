"""Doers of the merge queue: assemble the queue, test candidates, land, deliver."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from crew.domain import commands
from crew.domain.commands import Command
from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.names import landed_ref
from crew.domain.kernel.text import commit_line
from crew.domain.lead_choice import LEADS
from crew.domain.merging import merge_outcomes
from crew.domain.merging.merge_plan import is_crews, queued_tasks, undelivered
from crew.domain.merging.merge_reports import Assembled, Conflicting, Delivered, MergeResult, Tips
from crew.domain.merging.queue_search import believed_tips, layout, prefix_to_land
from crew.domain.rows.merge_queue import Candidate, Entry, MergeQueue, Trial
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.runner.doers.context import Context, Doer
from crew.runner.doers.evidence import is_forged
from crew.runner.doers.rewritten_target import contained, follow_target, newest_seen, replay


@dataclass(slots=True, kw_only=True)
class _Assembly:
    """The queue while it is assembled; `known` holds the merges of the queue before."""

    tips: Tips
    base: str
    proven: bool
    known: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    waiting: str = ""
    tip: str = ""
    chain: list[Candidate] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    cleared: tuple[Entry, ...] = ()
    held: list[Entry] = field(default_factory=list)
    landed: list[tuple[Task, str]] = field(default_factory=list)
    conflicts: list[Conflicting] = field(default_factory=list)
    refused: list[tuple[Task, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tip = self.tip or self.base

    def built(self) -> Assembled:
        return Assembled(
            tips=self.tips,
            base=self.base,
            proven=self.proven,
            waiting=self.waiting,
            chain=tuple(self.chain),
            trials=tuple(self.trials),
            cleared=self.cleared,
            held=tuple(self.held),
            landed=tuple(self.landed),
            conflicts=tuple(self.conflicts),
            refused=tuple(self.refused),
        )


async def assemble(ctx: Context, command: Command) -> list[Fact]:
    """Merge the waiting tasks in memory, each onto those before it in the queue or its trial."""
    target = command.subject
    if await follow_target(ctx, target):
        return []
    tips = await ctx.outside.tips(target)
    queue = _queue(ctx, command)
    assembly = await _base(ctx, tips, queue)
    assembly.known = _merges_in(queue)
    waiting = queued_tasks(ctx.world(), target)[: ctx.rules.longest_queue]
    tasks = {(task.id, task.head): task for task in waiting}
    wanted = layout(queue, tuple(tasks), rules=ctx.rules, proven=assembly.proven)
    assembly.cleared = wanted.cleared
    for entry in wanted.main:
        await _append(ctx, assembly, tasks[entry])
    for base, entries in wanted.trials:
        await _add_trial(ctx, assembly, base or assembly.base, [tasks[e] for e in entries])
    assembly.held += wanted.later
    return merge_outcomes.assembled(
        ctx.world(), target, assembly.built(), leads=LEADS, rules=ctx.rules, at=ctx.now()
    )


async def _add_trial(ctx: Context, assembly: _Assembly, base: str, tasks: list[Task]) -> None:
    trial = replace(
        assembly,
        base=base,
        tip=base,
        proven=True,
        chain=[],
        trials=[],
        held=[],
        landed=[],
        conflicts=[],
        refused=[],
    )
    for task in tasks:
        await _append(ctx, trial, task)
    if trial.chain:
        assembly.trials.append(Trial(base, tuple(trial.chain)))
    assembly.held += trial.held
    assembly.landed += trial.landed
    assembly.conflicts += trial.conflicts
    assembly.refused += trial.refused


async def _base(ctx: Context, tips: Tips, queue: MergeQueue) -> _Assembly:
    """The integration tip, merged with commits that others made on the target."""
    contains, target = ctx.outside.contains, queue.id
    await _refuse_forged(ctx, tips, queue)
    if await contains(ancestor=tips.target, descendant=tips.integration):
        return _Assembly(tips=tips, base=tips.integration, proven=True)
    if await contains(ancestor=tips.integration, descendant=tips.target):
        return _Assembly(tips=tips, base=tips.target, proven=True)
    merged = await ctx.outside.merge_target(tips, target)
    if merged.commit:
        return _Assembly(tips=tips, base=merged.commit, proven=False)
    return _Assembly(
        tips=tips,
        base=tips.integration,
        proven=True,
        waiting=f"{target} and what crew landed conflict in {', '.join(merged.conflicts)}",
    )


async def _refuse_forged(ctx: Context, tips: Tips, queue: MergeQueue) -> None:
    if await is_forged(ctx, tips, queue):
        raise Conflict(
            f"{landed_ref(queue.id)} is at {tips.integration[:12]}, where crew did not put it",
            hint=f"git update-ref {landed_ref(queue.id)} {queue.integration}",
            code="landed_ref_moved",
        )


def _merges_in(queue: MergeQueue) -> dict[tuple[str, str, str], str]:
    """The known merge commits, by a task's head and the commit before it in the queue."""
    return {
        (before, one.task, one.head): one.commit
        for stack in queue.stacks
        for before, one in zip(stack.commits, stack.chain, strict=False)
    }


async def _append(ctx: Context, assembly: _Assembly, task: Task) -> None:
    """Add a task; at the same place as before it keeps its merge commit."""
    outside = ctx.outside
    if commit := assembly.known.get((assembly.tip, task.id, task.head)):
        assembly.chain.append(Candidate(task.id, task.head, commit))
        assembly.tip = commit
        return
    if await outside.contains(ancestor=task.head, descendant=assembly.base):
        await _add_contained(ctx, assembly, task)
        return
    merged = await _merge(ctx, task, onto=assembly.tip)
    if merged.commit:
        assembly.chain.append(Candidate(task.id, task.head, merged.commit))
        assembly.tip = merged.commit
        return
    if merged.refused:
        assembly.refused.append((task, merged.refused))
        return
    if assembly.chain:
        merged = await _merge(ctx, task, onto=assembly.base)
    if merged.commit:
        assembly.held.append((task.id, task.head))
    else:
        onto, paths = merged.theirs or assembly.base, merged.conflicts
        sides = await outside.conflict_sides(ours=task.head, theirs=onto, paths=paths)
        assembly.conflicts.append(Conflicting(task=task, merge=merged, sides=sides, onto=onto))


async def _add_contained(ctx: Context, assembly: _Assembly, task: Task) -> None:
    """Record a task whose head is contained elsewhere: it landed, or lands with a task on trial."""
    for tip in (assembly.tips.target, assembly.tips.integration):
        if await ctx.outside.contains(ancestor=task.head, descendant=tip):
            assembly.landed.append((task, tip))
            return
    assembly.held.append((task.id, task.head))


async def _merge(ctx: Context, task: Task, *, onto: str) -> MergeResult:
    """Merge the work, without commits that a person took out of the target."""
    replayed = await replay(ctx, task.head, onto=onto, target=task.target, favours=task.favours)
    if not replayed.commit:
        return replayed
    if replayed.commit == onto:
        return MergeResult(refused=f"its commits were taken out of {task.target} again")
    run = ctx.world().runs.get(task.run or "")
    return await ctx.outside.merge(
        onto=onto,
        head=replayed.commit,
        message=merge_message(task, run),
        at=task.queued_at or 0.0,
        favours=task.favours,
    )


def merge_message(task: Task, run: Run | None) -> str:
    """The merge commit's message: the task, the gate, the run, its steps and its cost."""
    lines = [f"Merge {task.branch or task.id}: {commit_line(task.title)}", "", f"Task: {task.id}"]
    lines += [f"Conflicts: settled by a person for {task.favours}"] if task.favours else []
    if run is not None:
        cost = "unknown" if run.cost_usd is None else f"${run.cost_usd:.2f}"
        lines += [f"Gate: {commit_line(task.gate)}"] if task.gate else []
        lines += [f"Run: {run.id} ({run.agent_kind})", f"Steps: {run.steps}", f"Cost: {cost}"]
    return "\n".join(lines) + "\n"


async def test_candidate(ctx: Context, command: Command) -> list[Fact]:
    assert isinstance(command, commands.TestCandidate)
    tasks = [c for c in _queue(ctx, command).candidates if c.commit == command.commit]
    gate = await ctx.outside.run_gate(command.commit, task=tasks[0].task if tasks else "")
    return merge_outcomes.candidate_tested(_queue(ctx, command), command.commit, gate, at=ctx.now())


async def land(ctx: Context, command: Command) -> list[Fact]:
    """Move the integration ref; an earlier try may have moved it and been killed afterwards."""
    queue = _queue(ctx, command)
    length = prefix_to_land(queue)
    if length is None or await follow_target(ctx, queue.id):
        return []
    waits = await _sign(ctx, queue, length)
    if waits is not None:
        return waits
    queue = _queue(ctx, command)
    if prefix_to_land(queue) != length:
        return []  # it was built again in the meantime
    commit = queue.commit_at(length)
    tips = await ctx.outside.tips(queue.id)
    if tips.integration != commit:
        if not await _has_what_was_seen(ctx, queue, tips):
            return merge_outcomes.outdated(_queue(ctx, command), at=ctx.now())
        await _refuse_forged(ctx, tips, queue)
        if _queue(ctx, command) != queue:
            return []
        await ctx.outside.advance(queue.id, to=commit, expected=queue.integration)
    ctx.later(commands.Deliver(subject=queue.id), ctx.now())  # the last delivery had less
    return merge_outcomes.prefix_landed(ctx.world(), queue, length, at=ctx.now())


async def _has_what_was_seen(ctx: Context, queue: MergeQueue, tips: Tips) -> bool:
    """Whether the target still has the commits that the queue was built with."""
    if not queue.target_seen or is_crews(ctx.world(), queue.id):
        return True
    return await ctx.outside.contains(ancestor=queue.target_seen, descendant=tips.target)


async def _sign(ctx: Context, queue: MergeQueue, length: int) -> list[Fact] | None:
    """Sign what lands and record that first, so that after a kill these very commits land.

    If the key does not sign now, the facts that say so; the landing is then tried again.
    """
    is_own = queue.base not in (queue.integration, queue.target_seen)
    commits = queue.main.commits if is_own else queue.main.commits[1:]
    done = await ctx.outside.signed(commits, count=length + is_own)
    queue = ctx.world().queues[queue.id]
    if done.problem:
        ctx.later(commands.Land(subject=queue.id), ctx.now() + ctx.rules.delivery_retry_s)
        return merge_outcomes.held_up(queue, done.problem, done.remedy, at=ctx.now())
    if facts := merge_outcomes.signed(queue, dict(done.placed), at=ctx.now()):
        ctx.record(facts)
    return None


async def deliver(ctx: Context, command: Command) -> list[Fact]:
    """Update the target branch; a reason that prevents it is recorded once, then it is retried."""
    target = command.subject
    integration = _queue(ctx, command).integration
    believed = believed_tips(_queue(ctx, command))
    before = _queue(ctx, command)
    last_seen = None if is_crews(ctx.world(), target) else before.last_known
    landed = undelivered(ctx.world(), target)
    done = await ctx.outside.deliver(target, landed=believed, last_seen=last_seen)
    if done.state == "rewritten":
        if not await follow_target(ctx, target, had=done.commit):
            ctx.later(command, ctx.now() + ctx.rules.delivery_retry_s)
        return []
    if done.state == "delivered":
        seen = await newest_seen(ctx, target, done.commit)
        there = await contained(ctx, landed, done.commit)
        if _queue(ctx, command).rewritten_at != before.rewritten_at:
            return merge_outcomes.delivered_and_removed(ctx.world(), there, at=ctx.now())
        return merge_outcomes.delivered(
            ctx.world(),
            target,
            done,
            arrived=_still_late(ctx, there),
            at=ctx.now(),
            delivered=integration,
            last_seen=seen,
            is_shown=done.is_shown,
        )
    landed = undelivered(ctx.world(), target)
    if done.state == "over":
        arrived = [task.id for task in landed]
        return merge_outcomes.target_deleted(ctx.world(), target, arrived=arrived, at=ctx.now())
    tips = await ctx.outside.tips(target)
    if done.state == "current":
        arrived = await _arrived(ctx, target, done.commit)
        lost = await _lost(ctx, (task for task in landed if task.id not in arrived), tips)
        world = ctx.world()
        return [
            *merge_outcomes.delivered(
                world,
                target,
                done,
                arrived=arrived,
                at=ctx.now(),
                delivered=integration,
            ),
            *merge_outcomes.landings_lost(lost, at=ctx.now()),
            # Also after a person combined two branches that were red together.
            *merge_outcomes.target_moved(world.queues[target], tips, overtaken=0, at=ctx.now()),
        ]
    if done.state == "waiting" and _has_landed_since(_queue(ctx, command), tips, believed):
        ctx.later(command, ctx.now())  # what landed during this delivery is no forgery
        return []
    return _not_delivered(ctx, command, done, tips, integration=integration)


def _has_landed_since(queue: MergeQueue, tips: Tips, believed: frozenset[str]) -> bool:
    """Whether crew itself has moved the integration ref to another commit than it could before."""
    return tips.integration not in believed and tips.integration in believed_tips(queue)


def _not_delivered(
    ctx: Context, command: Command, done: Delivered, tips: Tips, *, integration: str
) -> list[Fact]:
    queue, now = _queue(ctx, command), ctx.now()
    overtaken = queue.overtaken + 1
    facts = merge_outcomes.target_moved(queue, tips, overtaken=overtaken, at=now)
    has_landed_more = queue.integration != integration
    if done.state == "diverged" and (facts or has_landed_more):
        return facts  # Delivered as soon as the combination is tested: the target may move again.
    ctx.later(command, now + ctx.rules.delivery_retry_s)
    return merge_outcomes.delivery_held_up(queue, done, at=now)


def _still_late(ctx: Context, landed: Iterable[Task]) -> list[str]:
    """Those that no other command has recorded as merged, or as lost, in the meantime."""
    tasks = ctx.world().tasks
    return [
        one.id
        for one in landed
        if tasks[one.id].awaits_delivery and tasks[one.id].landed_commit == one.landed_commit
    ]


async def _arrived(ctx: Context, target: str, commit: str) -> list[str]:
    """The landed tasks that this commit of the target contains."""
    return [
        task.id
        for task in undelivered(ctx.world(), target)
        if await ctx.outside.contains(ancestor=task.landed_commit, descendant=commit)
    ]


async def _lost(ctx: Context, landed: Iterable[Task], tips: Tips) -> list[Task]:
    """The landed tasks that the integration ref no longer contains."""
    return [
        task
        for task in landed
        if not await ctx.outside.contains(ancestor=task.landed_commit, descendant=tips.integration)
    ]


def _queue(ctx: Context, command: Command) -> MergeQueue:
    return ctx.world().queues[command.subject]


MERGE_DOERS: Mapping[type[Command], Doer] = {
    commands.Assemble: assemble,
    commands.TestCandidate: test_candidate,
    commands.Land: land,
    commands.Deliver: deliver,
}
