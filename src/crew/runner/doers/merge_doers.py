"""do, for the merge queue: assemble the queue, test candidates, land, deliver."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crew.domain import commands
from crew.domain.commands import Command
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.names import landed_ref
from crew.domain.kernel.quotation import LONGEST_NOTES
from crew.domain.merging.conflict_text import Sides, conflict_notes
from crew.domain.merging.merge_plan import queued_tasks, returned, undelivered
from crew.domain.merging.queue_search import layout, learned_rate, prefix_to_land, tested
from crew.domain.rows.merge_queue import MergeQueue, TestResult
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.task import Task, TaskState
from crew.domain.world import World, apply_all, moved, noted
from crew.runner.doers.context import Context, Doer
from crew.runner.outside.outside import Delivered, MergeResult, Tips


@dataclass(slots=True, kw_only=True)
class _Assembly:
    """The queue while it is being built; `known` are the merges of the queue as it was."""

    tips: Tips
    base: str
    proven: bool
    known: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    waiting: str = ""
    tip: str = ""
    chain: list[tuple[str, str, str]] = field(default_factory=list)
    trials: list[tuple[str, tuple[tuple[str, str, str], ...]]] = field(default_factory=list)
    cleared: tuple[tuple[str, str], ...] = ()
    held: list[tuple[str, str]] = field(default_factory=list)
    landed: list[tuple[Task, str]] = field(default_factory=list)
    conflicts: list[tuple[Task, MergeResult, Sides]] = field(default_factory=list)


async def assemble(ctx: Context, command: Command) -> list[Fact]:
    """Merge the waiting tasks in memory, each onto those before it in the queue or its trial."""
    target = command.subject
    tips = await ctx.outside.tips(target)
    assembly = await _base(ctx, tips, target)
    queue = _queue(ctx, command)
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
    return _assembled(ctx, target, tips, assembly)


async def _add_trial(ctx: Context, assembly: _Assembly, base: str, tasks: list[Task]) -> None:
    trial = _Assembly(tips=assembly.tips, base=base, tip=base, proven=True, known=assembly.known)
    for task in tasks:
        await _append(ctx, trial, task)
    if trial.chain:
        assembly.trials.append((base, tuple(trial.chain)))
    assembly.held += trial.held
    assembly.landed += trial.landed
    assembly.conflicts += trial.conflicts


async def _base(ctx: Context, tips: Tips, target: str) -> _Assembly:
    """The integration tip with everybody else's commits on the target."""
    contains = ctx.outside.contains
    if await contains(ancestor=tips.target, descendant=tips.integration):
        return _Assembly(tips=tips, base=tips.integration, tip=tips.integration, proven=True)
    if await contains(ancestor=tips.integration, descendant=tips.target):
        return _Assembly(tips=tips, base=tips.target, tip=tips.target, proven=True)
    merged = await ctx.outside.merge_target(tips, target)
    if merged.commit:
        return _Assembly(tips=tips, base=merged.commit, tip=merged.commit, proven=False)
    reason = f"{target} and what crew landed conflict in {', '.join(merged.conflicts)}"
    return _Assembly(
        tips=tips, base=tips.integration, tip=tips.integration, proven=True, waiting=reason
    )


def _merges_in(queue: MergeQueue) -> dict[tuple[str, str, str], str]:
    """Which commit came of merging a task's head onto what is before it in the queue."""
    return {
        (before, task, head): commit
        for stack in queue.stacks
        for before, (task, head, commit) in zip(stack.commits, stack.chain, strict=False)
    }


async def _append(ctx: Context, assembly: _Assembly, task: Task) -> None:
    """A task that stands where it stood needs no new merge: it would make the same commit."""
    outside = ctx.outside
    if commit := assembly.known.get((assembly.tip, task.id, task.head)):
        assembly.chain.append((task.id, task.head, commit))
        assembly.tip = commit
        return
    if await outside.contains(ancestor=task.head, descendant=assembly.base):
        await _add_contained(ctx, assembly, task)
        return
    merged = await _merge(ctx, task, onto=assembly.tip)
    if merged.commit:
        assembly.chain.append((task.id, task.head, merged.commit))
        assembly.tip = merged.commit
        return
    if assembly.chain:
        merged = await _merge(ctx, task, onto=assembly.base)
    if merged.commit:
        assembly.held.append((task.id, task.head))
    else:
        paths = merged.conflicts
        sides = await outside.conflict_sides(ours=task.head, theirs=assembly.base, paths=paths)
        assembly.conflicts.append((task, merged, sides))


async def _add_contained(ctx: Context, assembly: _Assembly, task: Task) -> None:
    """It has landed already, or is part of a task on trial, with which it lands or fails."""
    for tip in (assembly.tips.target, assembly.tips.integration):
        if await ctx.outside.contains(ancestor=task.head, descendant=tip):
            assembly.landed.append((task, tip))
            return
    assembly.held.append((task.id, task.head))


async def _merge(ctx: Context, task: Task, *, onto: str) -> MergeResult:
    run = ctx.world().runs.get(task.run or "")
    return await ctx.outside.merge(
        onto=onto,
        head=task.head,
        message=merge_message(task, run),
        at=task.queued_at or 0.0,
        favours=task.favours,
    )


def merge_message(task: Task, run: Run | None) -> str:
    """Names the task, who did it, in how many steps and for how much."""
    lines = [f"Merge {task.branch or task.id}: {task.title}", "", f"Task: {task.id}"]
    lines += [f"Conflicts: settled by a person for {task.favours}"] if task.favours else []
    if run is not None:
        cost = "unknown" if run.cost_usd is None else f"${run.cost_usd:.2f}"
        lines += [f"Gate: {' '.join(task.gate.split())}"] if task.gate else []
        lines += [f"Run: {run.id} ({run.agent_kind})", f"Steps: {run.steps}", f"Cost: {cost}"]
    return "\n".join(lines) + "\n"


def _assembled(ctx: Context, target: str, tips: Tips, assembly: _Assembly) -> list[Fact]:
    world, now = ctx.world(), ctx.now()
    queue = world.queues[target]
    chains = (assembly.chain, *(chain for _, chain in assembly.trials))
    current = {assembly.base, *(commit for chain in chains for _, _, commit in chain)}
    facts = [
        noted(
            queue,
            "assembled",
            at=now,
            integration=tips.integration,
            base=assembly.base,
            base_proven=assembly.proven,
            chain=tuple(assembly.chain),
            trials=tuple(assembly.trials),
            cleared=assembly.cleared,
            held=tuple(assembly.held),
            results=tuple(r for r in queue.results if r[0] in current),
            target_seen=tips.target,
            upstream=False,
            **_obstacle(queue, assembly),
        )
    ]
    for task, commit in assembly.landed:
        facts += _landed(ctx, task.id, task.head, commit)
    for task, conflict, sides in assembly.conflicts:
        if _still_waits(ctx, task.id, task.head):
            now_world = apply_all(world, facts)  # each question has a number of its own
            facts += _conflicted(ctx, now_world, task, conflict, sides, onto=assembly.base)
    return facts


def _obstacle(queue: MergeQueue, assembly: _Assembly) -> dict[str, str]:
    """What a person has to know while the queue cannot be delivered."""
    if assembly.waiting:
        return {"waiting": assembly.waiting, "remedy": f"git merge {landed_ref(queue.id)}"}
    return _outrun(queue) if queue.is_outrun else {"waiting": "", "remedy": ""}


def _outrun(queue: MergeQueue) -> dict[str, str]:
    return {
        "waiting": f"{queue.id} gets new commits before they are tested with what landed",
        "remedy": "make no commit there for as long as the gate takes",
    }


def _conflicted(
    ctx: Context, world: World, task: Task, conflict: MergeResult, sides: Sides, *, onto: str
) -> list[Fact]:
    paths, detail = conflict.conflicts, conflict.detail
    return returned(
        world,
        task.id,
        ask=Ask.CONFLICT,
        notes="",
        rules=ctx.rules,
        at=ctx.now(),
        merge_commit=onto,
        merge_paths=paths,
        merge_notes=conflict_notes(ctx.world(), sides, commit=onto, paths=paths, detail=detail),
    )


def _still_waits(ctx: Context, task: str, head: str) -> bool:
    found = ctx.world().tasks[task]
    return found.is_queued and found.head == head


def _landed(ctx: Context, task: str, head: str, commit: str) -> list[Fact]:
    if not _still_waits(ctx, task, head):
        return []
    row = ctx.world().tasks[task]
    return [noted(row, "landed", at=ctx.now(), landed_commit=commit)]


async def test_candidate(ctx: Context, command: Command) -> list[Fact]:
    assert isinstance(command, commands.TestCandidate)
    tasks = [c for c in _queue(ctx, command).candidates if c.commit == command.commit]
    gate = await ctx.outside.run_gate(command.commit, task=tasks[0].task if tasks else "")
    queue = _queue(ctx, command)
    notes = "" if gate.passed else gate.output[-LONGEST_NOTES:]
    result = TestResult(commit=command.commit, passed=gate.passed, times=1, notes=notes)
    results = tuple(tuple(r) for r in tested(queue, result))
    return [noted(queue, "tested", at=ctx.now(), results=results)]


async def land(ctx: Context, command: Command) -> list[Fact]:
    """Asks first whether the ref is there already: the last try may have died right after it."""
    queue = _queue(ctx, command)
    length = prefix_to_land(queue)
    if length is None:
        return []
    commit = queue.commit_at(length)
    tips = await ctx.outside.tips(queue.id)
    if tips.integration != commit:
        await ctx.outside.advance(queue.id, to=commit, expected=queue.integration)
    ctx.later(commands.Deliver(subject=queue.id), ctx.now())  # the last try was about less
    return _queue_landed(ctx, queue, length, commit)


def _queue_landed(ctx: Context, queue: MergeQueue, length: int, commit: str) -> list[Fact]:
    later = {candidate.commit for candidate in queue.candidates[length:]}
    facts = [
        noted(
            queue,
            "landed",
            at=ctx.now(),
            integration=commit,
            base=commit,
            base_proven=True,
            chain=queue.chain[length:],
            held=(),
            results=tuple(r for r in queue.results if r[0] in later),
            failure_rate=learned_rate(queue.failure_rate, passed=length),
        )
    ]
    for candidate in queue.candidates[:length]:
        facts += _landed(ctx, candidate.task, candidate.head, candidate.commit)
    return facts


async def deliver(ctx: Context, command: Command) -> list[Fact]:
    """What stands in the way is recorded once; then it is tried again until it is gone."""
    integration = _queue(ctx, command).integration
    done = await ctx.outside.deliver(command.subject)
    if done.state == "delivered":
        changes = {"delivered": integration, "is_shown": done.is_shown}
        return await _delivered(ctx, command, done, **changes)
    landed = undelivered(ctx.world(), command.subject)
    tips = await ctx.outside.tips(command.subject)
    if done.state == "current":  # also when a person brought together what was red together
        facts = await _delivered(ctx, command, done, delivered=integration)
        lost = await _landings_lost(ctx, landed, tips, facts)
        return [*facts, *lost, *_upstream_moved(ctx, _queue(ctx, command), tips, overtaken=0)]
    queue = _queue(ctx, command)
    overtaken = queue.overtaken + 1
    moved_on = _upstream_moved(ctx, queue, tips, overtaken=overtaken)
    has_landed_more = queue.integration != integration
    if done.state == "diverged" and (moved_on or has_landed_more):
        return moved_on  # tried at once when that is tested together: the target may move again
    ctx.later(command, ctx.now() + ctx.rules.delivery_retry_s)
    if done.state == "diverged":
        return []
    if (queue.waiting, queue.remedy) == (done.reason, done.remedy):
        return []
    waits = noted(queue, "delivery_waits", at=ctx.now(), waiting=done.reason, remedy=done.remedy)
    return [waits]


async def _delivered(ctx: Context, command: Command, done: Delivered, **changes: Any) -> list[Fact]:
    """What the target branch has now is merged, and not a moment before.

    The remedy is how the person gets the files of a submodule that came with it.
    """
    arrived = [
        task.id
        for task in undelivered(ctx.world(), command.subject)
        if await ctx.outside.contains(ancestor=task.landed_commit, descendant=done.commit)
    ]
    tasks, at = ctx.world().tasks, ctx.now()
    changes |= {"delivered_at": at, "overtaken": 0, "waiting": "", "remedy": done.remedy}
    trigger = "delivered" if done.state == "delivered" or arrived else "found_delivered"
    return [
        noted(_queue(ctx, command), trigger, at=at, **changes),
        *(moved(tasks[task], "delivered", to=TaskState.MERGED, at=at) for task in arrived),
    ]


async def _landings_lost(
    ctx: Context, landed: Sequence[Task], tips: Tips, delivered: Sequence[Fact]
) -> list[Fact]:
    """A person has set the integration ref back: what it does not have any more lands again."""
    merged = {fact.subject for fact in delivered if fact.kind == "task"}
    return [
        noted(task, "landing_lost", at=ctx.now(), landed_commit="")
        for task in landed
        if task.id not in merged
        and not await ctx.outside.contains(ancestor=task.landed_commit, descendant=tips.integration)
    ]


def _upstream_moved(ctx: Context, queue: MergeQueue, tips: Tips, *, overtaken: int) -> list[Fact]:
    if tips.target == queue.target_seen or queue.upstream:
        return []
    words = _outrun(queue) if replace(queue, overtaken=overtaken).is_outrun else {}
    changes = {"upstream": True, "overtaken": overtaken, **words}
    return [noted(queue, "diverged", at=ctx.now(), **changes)]


def _queue(ctx: Context, command: Command) -> MergeQueue:
    return ctx.world().queues[command.subject]


MERGE_DOERS: Mapping[type[Command], Doer] = {
    commands.Assemble: assemble,
    commands.TestCandidate: test_candidate,
    commands.Land: land,
    commands.Deliver: deliver,
}
