"""What follows as a step proceeds: it started, it got a process, it ended, it sent a signal."""

from typing import TYPE_CHECKING

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.quotation import quoted
from crew.domain.lead import Lead
from crew.domain.provider_limits import served
from crew.domain.rows.agent import AgentState
from crew.domain.rows.question import About, QuestionState
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.step import (
    SignalKind,
    StepOutcome,
)
from crew.domain.rules import Rules
from crew.domain.runs.message_outcomes import messages_given, messages_read
from crew.domain.runs.questions import dropped, put_off
from crew.domain.runs.run_holder import freed, lost_cost
from crew.domain.runs.step_errors import step_failed, step_recorded
from crew.domain.world import FactDraft, World, moved, noted

if TYPE_CHECKING:
    from crew.domain.field_groups import StepSession, StepUse


def step_started(world: World, run: Run, *, epoch: int, session: str, at: float) -> list[Fact]:
    """Record the step before its process starts, so that a crash leaves a trace.

    A run that is in a step already repeats it: crew was killed during it.
    """
    agent, lost = world.agents[str(run.agent)], lost_cost(run)
    step = run.step if run.stepping else run.step + 1
    return [
        noted(
            run,
            "step_started",
            at=at,
            step=step,
            steps=run.steps + (0 if run.stepping else 1),
            attempt=run.attempt + 1,
            stepping=True,
            epoch=epoch,
            session=session,
            signal="",
            signal_notes="",
            **lost,
        ),
        moved(agent, "step_started", to=AgentState.WORKING, at=at, retry_at=None, **lost),
        *messages_given(world, run, f"{run.id}/{run.round}/{step}", at=at),
        *_questions_withdrawn(world, run, at=at),
    ]


def step_found_done(world: World, run: Run, *, at: float) -> list[Fact]:
    """Check the work of a step that committed everything and printed DONE before crew crashed."""
    agent, lost = world.agents[str(run.agent)], lost_cost(run)
    return [
        noted(run, "step_found_done", at=at, stepping=False, **lost),
        moved(run, "done", to=RunState.REVIEWING, at=at, out_of_steps=False),
        moved(agent, "done", to=AgentState.DONE, at=at, pid=None, **lost),
    ]


def process_started(world: World, run: Run, pid: int, *, at: float) -> list[Fact]:
    """Record the process of this step; a late report about an ended step is ignored."""
    now, agent = world.runs[run.id], world.agents[str(run.agent)]
    if agent.run != run.id or not now.stepping or now.attempt != run.attempt:
        return []
    return [noted(agent, "process_started", at=at, pid=pid)]


def _questions_withdrawn(world: World, run: Run, *, at: float) -> list[Fact]:
    """Withdraw the questions of a step that ended, except the one that its run waits for.

    The next attempt asks again.
    """
    return [
        moved(question, "withdrawn", to=QuestionState.WITHDRAWN, at=at)
        for question in world.questions.values()
        if question.is_open
        and question.run == run.id
        and question.about in {About.PERMISSION, About.INPUT}
        and question.id != run.question
    ]


def step_ended(
    world: World, run: Run, lead: Lead, outcome: StepOutcome, *, rules: Rules, at: float
) -> list[Fact]:
    """What the end of a step means for its run, its agent and its lead."""
    draft = FactDraft(world)
    ends_asking = dropped if outcome.error is None else put_off
    draft.add(*ends_asking(world, run, at=at))
    run = draft.world.runs[run.id]
    outcome = lead.judge_step(draft.world, run, outcome)
    draft.add(*_step_ended(draft.world, run, outcome, rules=rules, at=at))
    draft.add(*lead.after_step(draft.world, run, outcome, rules=rules, at=at))
    return draft.facts


def _step_ended(
    world: World, run: Run, outcome: StepOutcome, *, rules: Rules, at: float
) -> list[Fact]:
    """The signal of the step counts, even if its process failed afterwards."""
    withdrawn = _questions_withdrawn(world, run, at=at)
    if outcome.error is not None and not run.signal:
        return [*step_failed(world, run, outcome, rules=rules, at=at), *withdrawn]
    went_well = [
        *messages_read(world, run, at=at),
        *served(world, run.agent_kind, rules, at=at),
        *withdrawn,
    ]
    if run.signal == SignalKind.NEEDS_USER_INPUT:
        return [*_parked(world, run, outcome, at=at), *went_well]
    return [*_succeeded(world, run, outcome, rules=rules, at=at), *went_well]


def _succeeded(
    world: World, run: Run, outcome: StepOutcome, *, rules: Rules, at: float
) -> list[Fact]:
    agent = world.agents[str(run.agent)]
    partly = run.signal == SignalKind.PARTIALLY_COMPLETE
    session = _renewed(run) if partly else _continued()
    facts = [step_recorded(run, outcome, at=at, told="", **session)]
    used: StepUse = {"last_step_at": at, **outcome.usage.added_to(agent)}
    trigger = _end_of_round(run, outcome, rules)
    if trigger is None:
        ended = noted(agent, "step_ended", at=at, error_count=0, last_error="", pid=None, **used)
        return [*facts, ended]
    return [
        *facts,
        moved(run, trigger, to=RunState.REVIEWING, at=at, out_of_steps=trigger == "step_limit"),
        moved(
            agent,
            trigger,
            to=AgentState.DONE,
            at=at,
            error_count=0,
            last_error="",
            pid=None,
            **used,
        ),
    ]


def _parked(world: World, run: Run, outcome: StepOutcome, *, at: float) -> list[Fact]:
    """Wait for a person: the process has ended, the slot is free, the session is kept."""
    agent = world.agents[str(run.agent)]
    return [
        step_recorded(run, outcome, at=at, agent=None, told="", fresh_retry=False),
        freed(agent, "parked", at=at, last_step_at=at, **outcome.usage.added_to(agent)),
    ]


def _continued() -> "StepSession":
    return {"fresh_retry": False, "ask": Ask.CONTINUE, "notes": ""}


def _renewed(run: Run) -> "StepSession":
    """Continue in a new session of the same role; its prompt describes what the branch holds."""
    return {
        "session": "",
        "session_used": False,
        "session_number": run.session_number + 1,
        "fresh_retry": False,
        "ask": Ask.PARTIAL,
        "notes": quoted(run.signal_notes),
    }


def _end_of_round(run: Run, outcome: StepOutcome, rules: Rules) -> str | None:
    if run.signal == SignalKind.COMPLETE or (outcome.done and not run.signal):
        return "done"
    return "step_limit" if run.step >= rules.max_steps else None
