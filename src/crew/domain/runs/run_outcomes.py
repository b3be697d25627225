"""What follows from what happened to a run: each function turns an outcome into facts."""

import shlex
from dataclasses import replace
from typing import Any, TypedDict

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.quotation import LONGEST_NOTES, headline, quoted
from crew.domain.lead import Lead
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.provider import ProviderState
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.rules import Rules
from crew.domain.runs.run_holder import agent_of, freed, shut
from crew.domain.world import FactDraft, World, born, moved, noted

STUBBORN = frozenset(
    {Ask.NESTED, Ask.UNCOMMITTED, Ask.NOTHING_COMMITTED, Ask.LOST_SIDE, Ask.NO_PLAN}
)
"""Complaints that end a run when they come back again and again."""


@frozen
class Prepared:
    """Where the work of a run happens."""

    worktree: str
    branch: str
    base: str


@frozen
class Evidence:
    """What crew itself saw in the worktree after DONE.

    `gate_passed` is None: it did not run; `review_notes` are those of reviewers who said no.
    """

    head: str
    nested: tuple[str, ...] = ()
    uncommitted: tuple[str, ...] = ()
    has_commits: bool = True
    lost_sides: tuple[str, ...] = ()
    unmerged: bool = False
    gate_passed: bool | None = None
    gate_output: str = ""
    gate: str = ""
    conflicts: tuple[str, ...] = ()
    review_notes: str | None = None


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
    """After a limit runs come back one after the other, not all in the same second."""
    provider = world.providers.get(rules.provider(run.agent_kind))
    if provider is None or provider.state != ProviderState.PAUSED:
        return []
    # Whoever is assigned by hand before its time waits like everybody else.
    return [noted(provider, "let_go", at=at, next_at=max(provider.next_at, at + rules.stagger_s))]


def new_run(task: Task, *, kind: str, rules: Rules, at: float) -> Run:
    """The next try at a task, on the task's own terms; no agent has it yet."""
    number = task.run_count + 1
    terms: dict[str, Any] = {"max_rounds": rules.max_rounds, **dict(task.terms)}
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
    """Where a gate or a review comes next, nothing is worked at before it."""
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
    """crew believes no DONE: what it saw itself decides what follows."""
    ask, notes = complaint(evidence)
    if ask is not None:
        return sent_back(world, run, lead, ask=ask, notes=notes, rules=rules, at=at)
    done = completed(world, run, lead, evidence.head, at=at)
    return [*gated(world, run.task, evidence.gate, at=at), *done]


def gated(world: World, task: str, gate: str, *, at: float) -> list[Fact]:
    """By which command the work was tested last; "none" where nothing says how."""
    row = world.tasks[task]
    return [] if gate in ("", row.gate) else [noted(row, "gate_known", at=at, gate=gate)]


def completed(world: World, run: Run, lead: Lead, head: str, *, at: float) -> list[Fact]:
    """The work is proven: the task goes to the merge queue, and its agent is free."""
    task = world.tasks[run.task]
    queued_at = at if lead.joins_queue(run) else None
    over: dict[str, Any] = {"agent": None, "ended_at": at, "complaints": 0, "signal": ""}
    over["stopping"] = False  # finished before it could be stopped
    facts = [
        moved(run, "approved", to=RunState.COMPLETE, at=at, **over),
        moved(task, "completed", to=TaskState.DONE, at=at, head=head, queued_at=queued_at),
    ]
    agent = agent_of(world, run)
    return facts + ([freed(agent, "released", at=at)] if agent else [])


def complaint(evidence: Evidence) -> tuple[Ask | None, str]:
    """The first thing that is wrong, in an order in which each hides those after it."""
    nested = "\n".join(ways_out(path) for path in evidence.nested[:20])
    output = quoted(evidence.gate_output, most=LONGEST_NOTES)
    in_order = (
        (evidence.nested, Ask.NESTED, quoted(nested, most=LONGEST_NOTES)),
        (evidence.uncommitted, Ask.UNCOMMITTED, _quoted_lines(evidence.uncommitted[:200])),
        (evidence.unmerged, Ask.CONFLICT, ""),
        (evidence.lost_sides, Ask.LOST_SIDE, _quoted_lines(evidence.lost_sides)),
        (not evidence.has_commits, Ask.NOTHING_COMMITTED, ""),
        (evidence.gate_passed is False, Ask.RED_GATE, output),
        (evidence.conflicts, Ask.CONFLICT, _quoted_lines(evidence.conflicts)),
        (evidence.review_notes is not None, Ask.REVIEW, evidence.review_notes or ""),
    )
    return next(((ask, notes) for is_wrong, ask, notes in in_order if is_wrong), (None, ""))


def ways_out(path: str) -> str:
    """What an agent can type to get the files of a nested repository into its commit."""
    name = shlex.quote(path)
    unlink = f"git rm -rfq --cached --ignore-unmatch -- {name}"
    return (
        f"{headline(path)}\n"
        f"    part of your work:      rm -rf {name}/.git && {unlink} && git add -- {name}\n"
        f"    a project of its own:   {unlink} && git submodule add --force -- URL {name}\n"
        f"    neither of the two:     {unlink} && rm -rf {name}"
    )


def _quoted_lines(names: tuple[str, ...]) -> str:
    return quoted("\n".join(map(headline, names)), most=LONGEST_NOTES)


def sent_back(
    world: World,
    run: Run,
    lead: Lead,
    *,
    ask: Ask,
    notes: str,
    rules: Rules,
    at: float,
    **changes: Any,
) -> list[Fact]:
    """Back to working with the reason, in the next round; or failed when no round is left.

    Rounds are for agents that nobody watches: who works at a terminal may try for ever.
    """
    complaints = run.complaints + 1 if ask == run.complaint else 1
    stubborn = ask in STUBBORN and complaints >= rules.same_complaint_limit
    tries = merge_tries(run, ask, changes.get("merge_commit", run.merge_commit))
    told = {"ask": ask, "notes": notes, "merge_tries": tries, **changes}
    if not lead.is_watched and tries > rules.same_complaint_limit:
        return lead.cannot_go_on(world, run, _unresolved(run), at=at, **told)
    max_rounds = changes.get("max_rounds", run.max_rounds)
    if not lead.is_watched and (run.round >= max_rounds or stubborn):
        rounds = "1 round" if run.round == 1 else f"{run.round} rounds"
        reason = f"gave up after {rounds}: {_why(run, ask, rules)}"
        return lead.cannot_go_on(world, run, reason, at=at, **told)
    agent = agent_of(world, run)
    facts = [
        moved(
            run,
            "sent_back",
            to=RunState.WORKING,
            at=at,
            round=run.round + 1,
            step=0,
            complaint=ask,
            complaints=complaints,
            error="",
            ended_at=None,
            signal="",
            **told,
        )
    ]
    if agent is not None:
        facts.append(moved(agent, "sent_back", to=AgentState.WORKING, at=at))
    return facts + (lead.pass_on(world, run, at=at) if _is_unprinted(run, ask, notes) else [])


def merge_tries(run: Run, ask: Ask, commit: str) -> int:
    """How often the run was asked to merge this very commit, this time included."""
    before = run.merge_tries if commit == run.merge_commit else 0
    return before + 1 if ask == Ask.CONFLICT and commit else before


def _unresolved(run: Run) -> str:
    files = ", ".join(map(headline, run.merge_paths))
    return (
        f"gave up: asked {run.merge_tries} times to resolve the conflict with "
        f"{run.merge_commit[:12]} in {files}, and it is not merged"
    )


def _why(run: Run, ask: Ask, rules: Rules) -> str:
    """How the last round ended and what was wrong with it."""
    if ask not in {Ask.UNCOMMITTED, Ask.NOTHING_COMMITTED}:
        return WHY[ask]
    done_word = run.done_word or rules.done_word
    if run.out_of_steps:
        return f"the step limit of {run.step} was reached without {done_word}, and {WHY[ask]}"
    return f"it said {done_word}, and {WHY[ask]}"


def _is_unprinted(run: Run, ask: Ask, notes: str) -> bool:
    """Whether the reason is still to be passed on; `crew complete` prints its own complaints."""
    is_unasked = run.state == RunState.COMPLETE or bool(run.signal)
    return is_unasked and (bool(notes) or ask != Ask.CHANGES)


WHY = {
    Ask.RED_GATE: "the gate is red",
    Ask.NESTED: "its work is in a repository inside the worktree, which no commit carries",
    Ask.UNCOMMITTED: "work was left uncommitted",
    Ask.NOTHING_COMMITTED: "nothing was committed",
    Ask.CONFLICT: "it conflicts with what landed before",
    Ask.LOST_SIDE: "its merge drops a part of one side",
    Ask.REVIEW: "the review failed",
    Ask.CHANGES: "a person asked for changes",
    Ask.NO_PLAN: "it says complete and has given no plan",
}


def broken_off(world: World, run: Run, reason: str, *, at: float, **told: Any) -> list[Fact]:
    """The run is over without success; the task can be restarted, nothing of it is removed."""
    task = world.tasks[run.task]
    over = {"error": reason, "ended_at": at, "agent": None, **told}
    facts = [moved(run, "failed", to=RunState.FAILED, at=at, **over)]
    if task.state == TaskState.IN_PROGRESS:
        facts.append(moved(task, "failed", to=TaskState.ERROR, at=at, queued_at=None))
    agent = agent_of(world, run)
    if agent is not None and agent.state == AgentState.DONE:
        facts.append(freed(agent, "gave_up", at=at))
    return facts


class Unknown(TypedDict, total=False):
    """What a step has cost that was cut off: its program reports no figures."""

    cost_usd: float | None


def killed(
    world: World, agent: Agent, *, at: float, trigger: str = "killed", rest_s: float = 0.0
) -> list[Fact]:
    """The agent is idle again, its run cancelled, its task back in the queue after a rest.

    A task that was stopped by name does not go back: it waits for whoever starts it again.
    """
    facts: list[Fact] = []
    run = world.runs.get(agent.run or "")
    is_stopped = run is not None and _is_stopped(world, run)
    # What the step that was cut off has used, its program never said.
    unknown: Unknown = {"cost_usd": None} if run is not None and run.stepping else {}
    if run is not None and run.is_live:
        facts.append(
            moved(
                run,
                "failed",
                to=RunState.FAILED,
                at=at,
                error=f"{'stopped' if is_stopped else trigger} with agent {agent.id}",
                stopping=False,
                session_used=run.session_used or run.stepping,
                stepping=False,
                agent=None,
                ended_at=at,
                **unknown,
            )
        )
        facts += shut(world, run, at=at)
    task = world.tasks.get(agent.task or "")
    if task is not None and task.state == TaskState.IN_PROGRESS and is_stopped:
        facts.append(moved(task, "failed", to=TaskState.ERROR, at=at))
    elif task is not None and task.state == TaskState.IN_PROGRESS:
        facts.append(moved(task, trigger, to=TaskState.TODO, at=at, not_before=at + rest_s))
    if agent.state == AgentState.IDLE:
        return [*facts, noted(agent, trigger, at=at, killing=False)]
    return [*facts, freed(agent, trigger, at=at, **unknown)]


def _is_stopped(world: World, run: Run) -> bool:
    terminal = world.terminal_of(run.id)
    return run.stopping or (terminal is not None and terminal.leaving != "")


def abandoned(world: World, task: Task, *, at: float) -> list[Fact]:
    """What ends with a task that is closed: whoever works at it, and a run that waits for one."""
    facts = [
        noted(agent, "kill_asked", at=at, killing=True)
        for agent in world.agents.values()
        if agent.task == task.id and not agent.killing
    ]
    run = world.runs.get(task.run or "")
    if run is not None and run.is_live and run.agent is None:
        facts.append(moved(run, "failed", to=RunState.FAILED, at=at, error="closed", ended_at=at))
    return facts
