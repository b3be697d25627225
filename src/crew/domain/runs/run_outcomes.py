"""What follows as a run proceeds: its task is assigned, prepared, checked and completed."""

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.lead import Lead
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.provider import ProviderState
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.rules import Rules
from crew.domain.runs.complaints import Evidence, complaint, refusal
from crew.domain.runs.next_round import sent_back
from crew.domain.runs.run_holder import agent_of, freed
from crew.domain.world import FactDraft, World, born, moved, noted

if TYPE_CHECKING:
    from crew.domain.field_groups import RunWishes
    from crew.domain.row_changes import RunFields


@frozen
class Prepared:
    """The worktree and branch of a run."""

    worktree: str
    branch: str
    base: str


def assigned(
    world: World, agent: Agent, task: Task, *, lead: Lead, rules: Rules, at: float
) -> list[Fact]:
    """Give a task to an idle agent: a new run, or the one that was sent back."""
    run = world.runs.get(task.run or "")
    if task.state == TaskState.IN_PROGRESS and run is not None and run.is_live:
        return [
            noted(run, "resumed", at=at, agent=agent.id),
            *_taken_up(world, agent, task, run, at=at),
            *_staggered(world, run, rules, at=at),
        ]
    kind = lead.wanted_kind(world, task) or agent.agent_kind
    new = new_run(task, kind=kind, rules=rules, at=at)
    new = lead.begin(world, replace(new, agent=agent.id))
    return [
        *started(task, new, at=at),
        _taken(agent, task, new.id, at=at),
        *_staggered(world, new, rules, at=at),
    ]


def _staggered(world: World, run: Run, rules: Rules, *, at: float) -> list[Fact]:
    """After a rate limit, runs start one after the other and not all in the same second."""
    provider = world.providers.get(rules.provider(run.agent_kind))
    if provider is None or provider.state != ProviderState.PAUSED:
        return []
    # A task that was assigned by hand waits like all others.
    return [noted(provider, "let_go", at=at, next_at=max(provider.next_at, at + rules.stagger_s))]


def new_run(task: Task, *, kind: str, rules: Rules, at: float) -> Run:
    """The next run of a task, with the task's own terms and without an agent."""
    number = task.run_count + 1
    terms = cast("RunWishes", {"max_rounds": rules.max_rounds, **dict(task.terms)})
    return Run(
        id=f"{task.id}.{number}",
        task=task.id,
        number=number,
        agent_kind=kind,
        ask=Ask.FIRST if number == 1 else Ask.RESUMED,
        started_at=at,
        **terms,
    )


def started(task: Task, run: Run, *, at: float) -> list[Fact]:
    return [
        moved(task, "started", to=TaskState.IN_PROGRESS, at=at, run=run.id, run_count=run.number),
        born(run, "created", at=at),
    ]


def _taken_up(world: World, agent: Agent, task: Task, run: Run, *, at: float) -> list[Fact]:
    """Give a waiting run to an agent; a run that is in its gate or review continues there."""
    draft = FactDraft(world)
    draft.add(_taken(agent, task, run.id, at=at))
    if run.state == RunState.REVIEWING:
        draft.add(moved(draft.world.agents[agent.id], "to_check", to=AgentState.DONE, at=at))
    return draft.facts


def _taken(agent: Agent, task: Task, run: str, *, at: float) -> Fact:
    return moved(
        agent, "assigned", to=AgentState.READY, at=at, task=task.id, run=run, task_assigned_at=at
    )


def prepared(world: World, run: Run, where: Prepared, *, at: float) -> list[Fact]:
    task = world.tasks[run.task]
    facts = [noted(task, "prepared", at=at, worktree=where.worktree, branch=where.branch)]
    if run.state == RunState.INIT:
        facts.append(moved(run, "prepared", to=RunState.WORKING, at=at, base=where.base))
    return facts


def checked(
    world: World, run: Run, lead: Lead, evidence: Evidence, *, rules: Rules, at: float
) -> list[Fact]:
    """Decide what follows from crew's own evidence, because DONE alone proves nothing."""
    draft = FactDraft(world)
    draft.add(*merge_kept(run, evidence, at=at))
    world, run = draft.world, draft.world.runs[run.id]
    ask, notes = complaint(evidence)
    if ask is not None:
        told = refusal(evidence, ask)
        draft.add(*sent_back(world, run, lead, ask=ask, notes=notes, rules=rules, at=at, **told))
        return draft.facts
    draft.add(*gated(world, run.task, evidence.gate, at=at))
    draft.add(*completed(draft.world, run, lead, evidence.head, at=at))
    return draft.facts


def merge_kept(run: Run, evidence: Evidence, *, at: float) -> list[Fact]:
    """Record once that a merge lost nothing of either side, if this evidence looked at it."""
    is_due = run.merge_commit and not run.merge_kept and evidence.head != run.merge_accepted
    if not is_due or evidence.unmerged or complaint(evidence)[0] in _BEFORE_THE_MERGE:
        return []
    return [noted(run, "merge_kept", at=at, merge_kept=evidence.head)]


_BEFORE_THE_MERGE = frozenset(
    {Ask.REFUSED, Ask.NESTED, Ask.OFF_HEAD, Ask.UNCOMMITTED, Ask.LOST_SIDE}
)
"""Complaints after which nothing is known about the merge, or nothing good."""


def not_checked(run: Run, reason: str, *, at: float) -> list[Fact]:
    """Record why the check could not be made; the next runner makes it."""
    return [noted(run, "not_checked", at=at, error=reason)] if run.is_live else []


def gated(world: World, task: str, gate: str, *, at: float) -> list[Fact]:
    """Record the command that last tested the work; "none" if no command is configured."""
    row = world.tasks[task]
    return [] if gate in ("", row.gate) else [noted(row, "gate_known", at=at, gate=gate)]


def completed(world: World, run: Run, lead: Lead, head: str, *, at: float) -> list[Fact]:
    """The work is proven: the task joins the merge queue, and its agent is free."""
    task = world.tasks[run.task]
    queued_at = at if lead.joins_queue(run) else None
    over: RunFields = {"agent": None, "ended_at": at, "complaints": 0, "signal": ""}
    over["stopping"] = False  # finished before it could be stopped
    if run.unjudged:
        over["unjudged"] = ()
    if run.error:
        over["error"] = ""
    facts = [
        moved(run, "approved", to=RunState.COMPLETE, at=at, **over),
        moved(task, "completed", to=TaskState.DONE, at=at, head=head, queued_at=queued_at),
    ]
    agent = agent_of(world, run)
    return facts + ([freed(agent, "released", at=at)] if agent else [])
