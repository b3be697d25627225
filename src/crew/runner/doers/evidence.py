"""Checks finished work: the state of the worktree, the gate, conflicts and the reviews."""

import asyncio
from dataclasses import replace

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen
from crew.domain.merging.merge_reports import Tips
from crew.domain.merging.queue_search import believed_tips
from crew.domain.provider_limits import PAUSING, opens_at
from crew.domain.quests.brief import brief_of
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.message import MessageState
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.task import Task
from crew.domain.runs.complaints import Evidence
from crew.domain.runs.gate import NO_GATE, GateResult
from crew.domain.runs.message_outcomes import given, messages_for, messages_read
from crew.domain.runs.verdicts import (
    complaints,
    in_this_review,
    no_verdict,
    review_ended,
    review_lost,
    still_to_ask,
)
from crew.runner.doers.context import Context
from crew.runner.doers.rewritten_target import follow_target, replay
from crew.runner.outside.outside import ReviewCall, WorkSeen


async def gather(
    ctx: Context, run: Run, task: Task, look: WorkSeen, *, tries_merge: bool
) -> Evidence:
    """Check the worktree first, then run the gate and the reviews on work that could be merged.

    `tries_merge` also reports conflicts, for a person at a terminal; for other runs the merge queue
    finds them.
    """
    head, outside = look.head, ctx.outside
    if found := await seen_at_once(ctx, run, look):
        return found
    if await follow_target(ctx, task.target):
        task = ctx.world().tasks[task.id]
    base = await newest_base(ctx, task.target)
    replayed = await replay(ctx, head, onto=base, target=task.target)
    if replayed.commit == base or await outside.contains(ancestor=head, descendant=base):
        return Evidence(head=head, has_commits=False)
    gate = await _gates(ctx, run, replayed.commit or head)
    if not gate.passed:
        return Evidence(head=head, gate_passed=False, gate_output=gate.output)
    if tries_merge and (conflicts := await _conflicts(ctx, task, base, head)):
        return Evidence(head=head, gate_passed=True, conflicts=conflicts)
    notes = await _review(ctx, run, task, head)
    judged = ctx.rules.reviews_needed(skip=task.skip_review, reviewers=_reviewers(ctx, run)) > 0
    return Evidence(
        head=head,
        gate_passed=True,
        gate_output=gate.output,
        gate=gate.command,
        review_notes=notes,
        unfinished=not (tries_merge or judged) and task.must_be_finished and run.out_of_steps,
    )


async def seen_at_once(ctx: Context, run: Run, look: WorkSeen) -> Evidence | None:
    """A fault that the worktree shows without running anything; None if there is none."""
    head = look.head
    faults = ("refused", "nested", "unpushed", "off_head")
    if found := next((one for one in faults if getattr(look, one)), None):
        return Evidence(head=head, **{found: getattr(look, found)})
    if look.uncommitted:
        says = await ctx.outside.refusal_of_commit(ctx.world().tasks[run.task])
        return Evidence(head=head, uncommitted=look.uncommitted, git_says=says)
    return await _fault_of_merge(ctx, run, head) if run.merge_commit else None


async def _fault_of_merge(ctx: Context, run: Run, head: str) -> Evidence | None:
    """Whether the commit that had to be merged is not, or not with all of both sides."""
    outside = ctx.outside
    if not await outside.contains(ancestor=run.merge_commit, descendant=head):
        return Evidence(head=head, unmerged=True)
    if await _is_known_merge(ctx, run, head):
        return None
    if lost := await outside.lost_sides(run, head=head):
        return Evidence(head=head, lost_sides=lost)
    return None


async def _is_known_merge(ctx: Context, run: Run, head: str) -> bool:
    """Whether this merge was found to keep both sides before, or a person took it as it is.

    Commits after a sound merge may change all of it, as commits after any landing may.
    """
    if head == run.merge_accepted:
        return True
    kept = run.merge_kept
    return kept != "" and await ctx.outside.contains(ancestor=kept, descendant=head)


async def _gates(ctx: Context, run: Run, head: str) -> GateResult:
    """Run the repository's gate, then the proof that the run's terms require."""
    gate = await ctx.outside.run_gate(head, task=run.task)
    if not gate.passed or not run.proof:
        return gate
    proof = await ctx.outside.run_gate(head, task=run.task, command=run.proof)
    commands = (one for one in (gate.command, proof.command) if one not in ("", NO_GATE))
    return replace(proof, command=", ".join(commands) or gate.command)


async def newest_base(ctx: Context, target: str) -> str:
    """The newest base: the integration tip, or the target's if that contains all that landed."""
    tips = await ctx.outside.tips(target)
    contains, queue = ctx.outside.contains, ctx.world().queues.get(target)
    if queue is not None and await is_forged(ctx, tips, queue):
        tips = replace(tips, integration=queue.integration)
    if await contains(ancestor=tips.target, descendant=tips.integration):
        return tips.integration
    newer = await contains(ancestor=tips.integration, descendant=tips.target)
    return tips.target if newer else tips.integration


async def is_forged(ctx: Context, tips: Tips, queue: MergeQueue) -> bool:
    """Whether the integration ref has commits that neither crew landed nor the target has."""
    if not queue.integration or tips.integration in believed_tips(queue):
        return False
    return not await ctx.outside.contains(ancestor=tips.integration, descendant=tips.target)


async def _conflicts(ctx: Context, task: Task, base: str, head: str) -> tuple[str, ...]:
    replayed = await replay(ctx, head, onto=base, target=task.target)
    if not replayed.commit:
        return replayed.conflicts
    tried = await ctx.outside.merge(
        onto=base, head=replayed.commit, message="a trial\n", at=ctx.now()
    )
    return tried.conflicts


async def _review(ctx: Context, run: Run, task: Task, head: str) -> str | None:
    """The notes of the task's reviewers; a PASS of this commit counts whenever it was given."""
    reviewers = _reviewers(ctx, run)
    needed = ctx.rules.reviews_needed(skip=task.skip_review, reviewers=reviewers)
    return await notes_of(ctx, run, task, head, Panel(reviewers=reviewers, needed=needed))


def _reviewers(ctx: Context, run: Run) -> tuple[str, ...]:
    return ctx.rules.reviewers if run.reviewers is None else run.reviewers


@frozen
class Panel:
    """The reviewers of a commit, and how many PASSes it needs.

    `asks_anew` means that a PASS of an earlier review of the same commit does not count.
    """

    reviewers: tuple[str, ...]
    needed: int
    asks_anew: bool = False


async def notes_of(ctx: Context, run: Run, task: Task, head: str, panel: Panel) -> str | None:
    """Ask the reviewers that have not passed this commit; with a new message, ask all of them.

    Returns the notes of those that failed it. A FAIL that the worker has not been told answers for
    all reviewers, so none of them is asked again. They are asked again if a message arrived that no
    reviewer was given.
    """
    if not panel.needed:
        return None
    if notes := complaints(run, head):
        return notes
    known = in_this_review(run) if panel.asks_anew else run
    known = replace(known, verdicts=()) if messages_for(ctx.world(), task.id) else known
    missing = still_to_ask(known, panel.reviewers, commit=head, needed=panel.needed)
    while missing:
        await _ask(ctx, _review_call(ctx, run, task, head), missing)
        ctx.record(messages_read(ctx.world(), ctx.world().runs[run.id], at=ctx.now()))
        notes = complaints(ctx.world().runs[run.id], head)
        if notes is not None or not messages_for(ctx.world(), task.id):
            return notes
    return None


def _review_call(ctx: Context, run: Run, task: Task, head: str) -> ReviewCall:
    """A review call without its reviewer; the messages in it are recorded as given beforehand."""
    messages = messages_for(ctx.world(), task.id)
    new = [one for one in messages if one.state == MessageState.QUEUED]
    ctx.record([given(one, _step_key(run), at=ctx.now()) for one in new])
    return ReviewCall(
        run=run,
        task=task,
        commit=head,
        reviewer="",
        messages=tuple(messages),
        heard=lambda message: _heard(ctx, run, message),
        brief=brief_of(ctx.world(), run),
    )


def _step_key(run: Run) -> str:
    return f"{run.id}/{run.round}/review"


class ReviewerPaused(CrewError):
    """A reviewer is at its rate limit, or fails until a person acts: the work waits for it."""

    code = "reviewer_paused"

    def __init__(self, kind: str) -> None:
        hint = "`crew ps` shows when it resumes, or what to do; then try again"
        super().__init__(f"the reviewer {kind} is paused", hint=hint)


def _refuse_paused(ctx: Context, reviewers: tuple[str, ...]) -> None:
    for kind in reviewers:
        at = opens_at(ctx.world(), kind, ctx.rules)
        if at is not None and at > ctx.now():
            raise ReviewerPaused(kind)


async def _ask(ctx: Context, call: ReviewCall, reviewers: tuple[str, ...]) -> None:
    """Ask these reviewers in parallel; a review without a verdict is no matter beside a FAIL."""
    _refuse_paused(ctx, reviewers)
    each = (
        replace(call, reviewer=name, controls=ctx.controls(f"{call.run.id}/review/{number}"))
        for number, name in enumerate(reviewers)
    )
    ended = await asyncio.gather(*(_ask_one(ctx, one) for one in each), return_exceptions=True)
    failed = complaints(ctx.world().runs[call.run.id], call.commit)
    for one in ended:
        if one is not None and not (failed and isinstance(one, CrewError)):
            raise one


async def _ask_one(ctx: Context, call: ReviewCall) -> None:
    """Record a review at once: a verdict counts even if another review fails and is repeated."""
    try:
        review = await ctx.outside.review(call)
    except asyncio.CancelledError:
        run = ctx.world().runs[call.run.id]
        ctx.record(review_lost(ctx.world(), run, call.reviewer, at=ctx.now()))
        raise
    world, rules = ctx.world(), ctx.rules
    ctx.record(review_ended(world, world.runs[call.run.id], review, rules=rules, at=ctx.now()))
    if review.verdict is not None:
        return
    if review.error is not None and review.error.kind in PAUSING:
        raise ReviewerPaused(call.reviewer)
    raise no_verdict(review, call.task.id)


def _heard(ctx: Context, run: Run, message: str) -> None:
    """Record that a reviewer received a message during its review."""
    found, now = ctx.world().messages[message], ctx.world().runs[run.id]
    if found.state == MessageState.QUEUED and now.state == RunState.REVIEWING:
        ctx.record([given(found, _step_key(run), at=ctx.now())])
