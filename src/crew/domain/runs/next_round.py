"""What follows when a run is sent back: the next round, or failure when no round is left."""

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.quotation import headline
from crew.domain.lead import Lead
from crew.domain.rows.agent import AgentState
from crew.domain.rows.question import About
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rules import Rules
from crew.domain.runs.complaints import STUBBORN, WHY, words_of_git
from crew.domain.runs.gate import cause_in
from crew.domain.runs.questions import new_question
from crew.domain.runs.run_holder import agent_of
from crew.domain.world import World, born, moved

if TYPE_CHECKING:
    from crew.domain.field_groups import SentBackFields


def sent_back(
    world: World,
    run: Run,
    lead: Lead,
    *,
    ask: Ask,
    notes: str,
    rules: Rules,
    at: float,
    **changes: "Unpack[SentBackFields]",
) -> list[Fact]:
    """Start the next round with the reason, or fail the run when no round is left.

    A run that a person watches at a terminal has no limit of rounds.
    """
    complaints = run.complaints + 1 if ask == run.complaint else 1
    tries = merge_tries(run, ask, changes.get("merge_commit", run.merge_commit))
    told: SentBackFields = {"merge_tries": tries, **changes}
    if ask == Ask.REVIEW:
        told["unjudged"] = ()
    if ask != Ask.LOST_SIDE and run.merge_refused:
        told["merge_refused"] = ""
    if reason := _given_up(replace(run, notes=notes, **told), lead, ask, complaints, rules=rules):
        if ask == Ask.LOST_SIDE:
            return _acceptance_asked(world, run, lead, reason, at=at, notes=notes, **told)
        return lead.out_of_tries(world, run, reason, at=at, ask=ask, notes=notes, **told)
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
            ask=ask,
            notes=notes,
            **told,
        )
    ]
    if agent is not None:
        facts.append(moved(agent, "sent_back", to=AgentState.WORKING, at=at))
    return facts + (lead.pass_on(world, run, at=at) if _is_unprinted(run, ask, notes) else [])


def _given_up(run: Run, lead: Lead, ask: Ask, complaints: int, *, rules: Rules) -> str:
    """Why there is no next round; empty if there is one."""
    if lead.is_watched:
        return ""
    if run.merge_tries > rules.same_complaint_limit:
        return _unresolved(run)
    is_stubborn = ask in STUBBORN and complaints >= rules.same_complaint_limit
    if run.round < run.max_rounds and not is_stubborn:
        return ""
    rounds = "1 round" if run.round == 1 else f"{run.round} rounds"
    return f"gave up after {rounds}: {_why(run, ask, rules)}"


ACCEPT_CHOICES = ("accept", "agent", "give up")
"""The merge is taken as it is; the agent tries again; the task fails."""


def _acceptance_asked(
    world: World,
    run: Run,
    lead: Lead,
    reason: str,
    *,
    at: float,
    notes: str,
    **told: "Unpack[SentBackFields]",
) -> list[Fact]:
    """Ask a person whether to take a merge that lacks a part of one side; the run waits."""
    commit = told.get("merge_refused", "")
    question = new_question(
        world,
        run,
        text=f"The work of task {run.task} was merged with {run.merge_commit[:12]}, which landed, "
        f"and a part of one side is missing in the result {commit[:12]}. Is that right (accept), "
        "does the agent try again (agent), or does the task fail (give up)?",
        context=f"{notes}\n\nThe answer accept holds for this commit alone, and so does "
        f"`crew merge {run.task} --accept`. The gate and the reviews follow as always.",
        at=at,
        about=About.LOST_SIDE,
        choices=ACCEPT_CHOICES,
    )
    waits = moved(
        run,
        "sent_back",
        to=RunState.WORKING,
        at=at,
        round=run.round + 1,
        step=0,
        complaint="",
        complaints=0,
        error=reason,
        signal="",
        ask=Ask.LOST_SIDE,
        notes=notes,
        agent=None,
        question=question.id,
        **told,
    )
    return [born(question, "asked", at=at), waits, *lead.held(world, run, at=at)]


def merge_tries(run: Run, ask: Ask, commit: str) -> int:
    """How often the run was asked to merge this commit, including this time."""
    before = run.merge_tries if commit == run.merge_commit else 0
    return before + 1 if ask == Ask.CONFLICT and commit else before


def _unresolved(run: Run) -> str:
    """The reason of a run that would now be asked once too often."""
    files = ", ".join(map(headline, run.merge_paths))
    return (
        f"gave up: asked {run.merge_tries - 1} times to resolve the conflict with "
        f"{run.merge_commit[:12]} in {files}, and it is not merged"
    )


def _why(run: Run, ask: Ask, rules: Rules) -> str:
    """How the last round ended and what was wrong with it."""
    if ask == Ask.RED_GATE and (cause := cause_in(run.notes)):
        return f"{WHY[ask]}: {cause}"
    if ask not in {Ask.UNCOMMITTED, Ask.NOTHING_COMMITTED, Ask.UNFINISHED}:
        return WHY[ask]
    done_word = run.done_word or rules.done_word
    limit = f"the step limit of {run.step} was reached without {done_word}"
    if ask == Ask.UNFINISHED:
        return limit
    git = f"; git refuses the commit: {said}" if (said := words_of_git(run.notes)) else ""
    if run.out_of_steps:
        return f"{limit}, and {WHY[ask]}{git}"
    return f"it said {done_word}, and {WHY[ask]}{git}"


def _is_unprinted(run: Run, ask: Ask, notes: str) -> bool:
    """Whether the reason still has to be sent; `crew complete` prints its own complaints."""
    is_unasked = run.state == RunState.COMPLETE or bool(run.signal)
    return is_unasked and (bool(notes) or ask != Ask.CHANGES)
