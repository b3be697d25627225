"""What crew sees for itself when somebody says that the work is finished."""

import asyncio

from crew.domain.brief import brief_of
from crew.domain.progress import Evidence
from crew.domain.review import Verdict, complaints, recorded, still_to_ask
from crew.domain.run import Run
from crew.domain.task import Task
from crew.runner.desk import Desk
from crew.runner.outside import GateResult, Look


async def gather(desk: Desk, run: Run, task: Task, look: Look) -> Evidence:
    """What can be seen at once comes first; the gate runs only on what could be merged."""
    head, outside = look.head, desk.outside
    if found := await seen_at_once(desk, run, look):
        return found
    base = await newest_base(desk, task.target)
    if await outside.contains(ancestor=head, descendant=base):
        return Evidence(head=head, has_commits=False)
    gate = await _gates(desk, run, head)
    if not gate.passed:
        return Evidence(head=head, gate_passed=False, gate_output=gate.output)
    if conflicts := await _conflicts(desk, run, base, head):
        return Evidence(head=head, gate_passed=True, conflicts=conflicts)
    notes = await _review(desk, run, task, head)
    return Evidence(head=head, gate_passed=True, gate_output=gate.output, review_notes=notes)


async def seen_at_once(desk: Desk, run: Run, look: Look) -> Evidence | None:
    """What is wrong with the worktree, whoever worked in it; None when nothing is."""
    head, outside = look.head, desk.outside
    if look.uncommitted:
        return Evidence(head=head, uncommitted=look.uncommitted)
    if not run.merge_commit:
        return None
    if not await outside.contains(ancestor=run.merge_commit, descendant=head):
        return Evidence(head=head, unmerged=True)
    if lost := await outside.lost_sides(run, head=head):
        return Evidence(head=head, lost_sides=lost)
    return None


async def _gates(desk: Desk, run: Run, head: str) -> GateResult:
    """The repository's gate, then the proof that this run was asked for."""
    gate = await desk.outside.run_gate(head, task=run.task)
    if not gate.passed or not run.proof:
        return gate
    return await desk.outside.run_gate(head, task=run.task, command=run.proof)


async def newest_base(desk: Desk, target: str) -> str:
    """What landed, and what others committed on the target if that holds all that landed."""
    tips = await desk.outside.tips(target)
    contains = desk.outside.contains
    if await contains(ancestor=tips.target, descendant=tips.integration):
        return tips.integration
    newer = await contains(ancestor=tips.integration, descendant=tips.target)
    return tips.target if newer else tips.integration


async def _conflicts(desk: Desk, run: Run, base: str, head: str) -> tuple[str, ...]:
    """Told at once to whoever works at a terminal; the merge queue tells an agent."""
    if not run.pane:
        return ()
    tried = await desk.outside.merge(onto=base, head=head, message="a trial\n", at=desk.now())
    return tried.conflicts


async def _review(desk: Desk, run: Run, task: Task, head: str) -> str | None:
    """Whoever passed this very commit before is not asked again."""
    reviewers = desk.rules.reviewers if run.reviewers is None else run.reviewers
    needed = desk.rules.reviews_needed(skip=task.skip_review, reviewers=reviewers)
    missing = still_to_ask(run, reviewers, commit=head, needed=needed)
    return await asked_for(desk, run, task, head, reviewers=missing)


async def asked_for(
    desk: Desk, run: Run, task: Task, head: str, *, reviewers: tuple[str, ...]
) -> str | None:
    """All reviewers at once, on this very commit; the notes of those who said no."""
    found = await asyncio.gather(
        *(_verdict(desk, run, task, commit=head, reviewer=name) for name in reviewers),
        return_exceptions=True,
    )
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return complaints(one for one in found if isinstance(one, Verdict))


async def _verdict(desk: Desk, run: Run, task: Task, *, commit: str, reviewer: str) -> Verdict:
    """Recorded at once: it counts also if another reviewer breaks off and is asked again."""
    brief = brief_of(desk.world(), run)
    found = await desk.outside.review(run, task, commit=commit, reviewer=reviewer, brief=brief)
    desk.record([recorded(desk.world().runs[run.id], found, at=desk.now())])
    return found
