"""What follows when a merge queue was built, tested, landed or delivered, or sends a task back."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypedDict

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import landed_ref
from crew.domain.kernel.quotation import LONGEST_NOTES, headline
from crew.domain.lead import Leads
from crew.domain.merging.conflict_text import Sides, conflict_notes
from crew.domain.merging.queue_search import learned_rate, tested
from crew.domain.rows.merge_queue import (
    OVERTAKEN_LIMIT,
    Candidate,
    Chain,
    Entry,
    MergeQueue,
    TestResult,
    Trial,
)
from crew.domain.rows.question import About
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.task import SENT_BACK, Task, TaskState
from crew.domain.rules import Rules
from crew.domain.runs.gate import GateResult
from crew.domain.runs.new_question import new_question
from crew.domain.runs.run_outcomes import merge_tries
from crew.domain.world import FactDraft, World, born, moved, noted

CONFLICT_CHOICES = ("agent", "mine", "theirs", "give up")
"""The agent resolves it; the task's side wins; the landed side wins; the task fails."""


@frozen
class Tips:
    """Where the integration ref and the target branch are."""

    integration: str
    target: str


@frozen
class MergeResult:
    """A merge commit, or the paths that conflict and git's words about them."""

    commit: str = ""
    conflicts: tuple[str, ...] = ()
    detail: str = ""


@frozen
class Conflicting:
    """A task that does not merge with the base of its queue, and both sides of the conflict."""

    task: Task
    merge: MergeResult
    sides: Sides


@frozen
class Assembled:
    """A queue as it was built just now.

    `landed` are the tasks that the target has already, each with the tip that has it; `waiting` is
    why the target itself cannot be merged.
    """

    tips: Tips
    base: str
    proven: bool
    waiting: str
    chain: Chain
    trials: tuple[Trial, ...]
    cleared: tuple[Entry, ...]
    held: tuple[Entry, ...]
    landed: tuple[tuple[Task, str], ...]
    conflicts: tuple[Conflicting, ...]

    @property
    def commits(self) -> frozenset[str]:
        chains = (self.chain, *(trial.chain for trial in self.trials))
        return frozenset((self.base, *(one.commit for chain in chains for one in chain)))


@frozen
class Delivered:
    """What came of a delivery: current, delivered, waiting or diverged.

    `commit` is where the target branch is now; `is_shown` says that a checkout shows it.
    """

    state: str
    commit: str = ""
    is_shown: bool = True
    reason: str = ""
    remedy: str = ""


def found(world: World, tips: Mapping[str, str], *, at: float) -> list[Fact]:
    """Queues of targets for which git has landed work that the database does not know."""
    return [
        born(MergeQueue(id=target, integration=tip, base=tip), "found", at=at)
        for target, tip in tips.items()
        if target not in world.queues
    ]


def assembled(
    world: World, target: str, built: Assembled, *, leads: Leads, rules: Rules, at: float
) -> list[Fact]:
    """The queue as it is now; a task that landed before or conflicts leaves it."""
    queue, draft = world.queues[target], FactDraft(world)
    draft.add(
        noted(
            queue,
            "assembled",
            at=at,
            integration=built.tips.integration,
            base=built.base,
            base_proven=built.proven,
            chain=built.chain,
            trials=built.trials,
            cleared=built.cleared,
            held=built.held,
            results=tuple(r for r in queue.results if r.commit in built.commits),
            target_seen=built.tips.target,
            upstream=False,
            **_obstacle(queue, built.waiting),
        )
    )
    for task, commit in built.landed:
        draft.add(*_landed(world, Candidate(task.id, task.head, commit), at=at))
    for one in built.conflicts:
        if _still_waits(world, one.task.id, one.task.head):
            draft.add(
                *_conflicted(draft.world, one, onto=built.base, leads=leads, rules=rules, at=at)
            )
    return draft.facts


class Obstacle(TypedDict, total=False):
    """What keeps a queue from being delivered, and what a person does about it."""

    waiting: str
    remedy: str


def _obstacle(queue: MergeQueue, waiting: str) -> Obstacle:
    """What a person has to know while the queue cannot be delivered."""
    if waiting:
        return {"waiting": waiting, "remedy": f"git merge {landed_ref(queue.id)}"}
    return _outrun(queue) if queue.is_outrun else {"waiting": "", "remedy": ""}


def _outrun(queue: MergeQueue) -> Obstacle:
    return {
        "waiting": f"{queue.id} gets new commits before they are tested with what landed",
        "remedy": "make no commit there for as long as the gate takes",
    }


def _conflicted(
    world: World, conflicting: Conflicting, *, onto: str, leads: Leads, rules: Rules, at: float
) -> list[Fact]:
    paths, detail = conflicting.merge.conflicts, conflicting.merge.detail
    return returned(
        world,
        conflicting.task.id,
        ask=Ask.CONFLICT,
        notes="",
        leads=leads,
        rules=rules,
        at=at,
        merge_commit=onto,
        merge_paths=paths,
        merge_notes=conflict_notes(
            world, leads, conflicting.sides, commit=onto, paths=paths, detail=detail
        ),
    )


def _still_waits(world: World, task: str, head: str) -> bool:
    found = world.tasks[task]
    return found.is_queued and found.head == head


def _landed(world: World, candidate: Candidate, *, at: float) -> list[Fact]:
    if not _still_waits(world, candidate.task, candidate.head):
        return []
    task = world.tasks[candidate.task]
    return [noted(task, "landed", at=at, landed_commit=candidate.commit)]


def candidate_tested(queue: MergeQueue, commit: str, gate: GateResult, *, at: float) -> list[Fact]:
    notes = "" if gate.passed else gate.output[-LONGEST_NOTES:]
    result = TestResult(commit=commit, passed=gate.passed, times=1, notes=notes)
    return [noted(queue, "tested", at=at, results=tested(queue, result))]


def prefix_landed(world: World, queue: MergeQueue, length: int, *, at: float) -> list[Fact]:
    """The first tasks of the queue have landed; those behind them are built on that now."""
    commit = queue.commit_at(length)
    later = {candidate.commit for candidate in queue.candidates[length:]}
    facts = [
        noted(
            queue,
            "landed",
            at=at,
            integration=commit,
            base=commit,
            base_proven=True,
            chain=queue.chain[length:],
            held=(),
            results=tuple(r for r in queue.results if r.commit in later),
            failure_rate=learned_rate(queue.failure_rate, passed=length),
        )
    ]
    for candidate in queue.candidates[:length]:
        facts += _landed(world, candidate, at=at)
    return facts


def delivered(
    world: World,
    target: str,
    done: Delivered,
    *,
    arrived: Collection[str],
    at: float,
    **changes: Any,
) -> list[Fact]:
    """What the target branch has now is merged, and not a moment before.

    The remedy is how a person gets the files of a submodule that came with it.
    """
    changes |= {"delivered_at": at, "overtaken": 0, "waiting": "", "remedy": done.remedy}
    trigger = "delivered" if done.state == "delivered" or arrived else "found_delivered"
    return [
        noted(world.queues[target], trigger, at=at, **changes),
        *(moved(world.tasks[task], "delivered", to=TaskState.MERGED, at=at) for task in arrived),
    ]


def landings_lost(tasks: Iterable[Task], *, at: float) -> list[Fact]:
    """A person has set the integration ref back: what it does not have any more lands again."""
    return [noted(task, "landing_lost", at=at, landed_commit="") for task in tasks]


def target_moved(queue: MergeQueue, tips: Tips, *, overtaken: int, at: float) -> list[Fact]:
    """Commits of others are on the target: they are tested together with what landed first."""
    if tips.target == queue.target_seen or queue.upstream:
        return []
    words: Obstacle = _outrun(queue) if overtaken >= OVERTAKEN_LIMIT else {}
    return [noted(queue, "diverged", at=at, upstream=True, overtaken=overtaken, **words)]


def delivery_held_up(queue: MergeQueue, done: Delivered, *, at: float) -> list[Fact]:
    """What is in the way is recorded once, however often the delivery is tried."""
    if done.state == "diverged" or (queue.waiting, queue.remedy) == (done.reason, done.remedy):
        return []
    return [noted(queue, "delivery_waits", at=at, waiting=done.reason, remedy=done.remedy)]


def returned(
    world: World,
    task_id: str,
    *,
    ask: Ask,
    notes: str,
    leads: Leads,
    rules: Rules,
    at: float,
    merge_commit: str = "",
    merge_paths: tuple[str, ...] = (),
    merge_notes: str = "",
) -> list[Fact]:
    """The queue sends a task back to its own session with the reason."""
    task = world.tasks[task_id]
    run = world.runs.get(task.run or "")
    draft = FactDraft(world)
    draft.add(moved(task, "sent_back", to=TaskState.IN_PROGRESS, at=at, **SENT_BACK))
    if run is None or run.state != RunState.COMPLETE:
        draft.add(moved(draft.world.tasks[task_id], "failed", to=TaskState.ERROR, at=at))
        return draft.facts
    aside: dict[str, Any] = {
        "merge_commit": merge_commit,
        "merge_head": task.head,
        "merge_paths": merge_paths,
        "merge_notes": merge_notes,
        "merge_tries": merge_tries(run, ask, merge_commit),
    }
    lead = leads.of_run(world, run)
    if ask == Ask.CONFLICT and not rules.conflicts_to_agent and not lead.is_watched:
        return _choice_asked(world, task, run, at=at, **aside)
    told = {"ask": ask, "notes": notes, **aside}
    if run.round >= run.max_rounds and not lead.is_watched:
        reason = f"the merge queue sent it back after {run.round} rounds"
        draft.add(*lead.cannot_go_on(draft.world, run, reason, at=at, **told))
    else:
        draft.add(*lead.take_back(draft.world, run, rules=rules, at=at, **told))
    return draft.facts


def _choice_asked(world: World, task: Task, run: Run, *, at: float, **aside: Any) -> list[Fact]:
    """A person decides; the task stays done, and out of the queue until then."""
    files = ", ".join(map(headline, aside["merge_paths"]))
    question = new_question(
        world,
        run,
        text=f"Task {task.id} conflicts with {aside['merge_commit'][:12]}, which landed, in "
        f"{files}. Who resolves it, or which lines win: mine (the task's) or theirs (what landed)?",
        context=aside["merge_notes"],
        at=at,
        about=About.CONFLICT,
        choices=CONFLICT_CHOICES,
    )
    return [
        born(question, "asked", at=at),
        noted(run, "conflicted", at=at, question=question.id, **aside),
        noted(task, "conflicted", at=at, conflict=question.id),
    ]
