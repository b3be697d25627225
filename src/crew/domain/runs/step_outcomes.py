"""What follows from a step of an agent: how it began, how it ended, what it said of itself."""

from typing import Any

from crew.domain.kernel.error_row import one_more_error
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.quotation import quoted
from crew.domain.lead import Lead
from crew.domain.provider_limits import limited, served
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.message import Message, MessageState
from crew.domain.rows.question import About, QuestionState
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.step import (
    FRESH_SESSION,
    ErrorKind,
    SignalKind,
    StepError,
    StepOutcome,
)
from crew.domain.rules import Rules
from crew.domain.runs.run_holder import agent_of, freed
from crew.domain.world import FactDraft, World, moved, noted


def step_started(world: World, run: Run, *, epoch: int, session: str, at: float) -> list[Fact]:
    """Recorded before the process starts, so that an interrupted step is known as one."""
    agent = world.agents[str(run.agent)]
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
        ),
        moved(agent, "step_started", to=AgentState.WORKING, at=at, retry_at=None),
        *_messages_given(world, run, f"{run.id}/{run.round}/{step}", at=at),
        *_leave_withdrawn(world, run, at=at),
    ]


def step_found_done(world: World, run: Run, *, at: float) -> list[Fact]:
    """crew died during the step, which had committed all and said DONE: it is checked as it is."""
    return [
        noted(run, "step_found_done", at=at, stepping=False),
        moved(run, "done", to=RunState.REVIEWING, at=at),
        moved(world.agents[str(run.agent)], "done", to=AgentState.DONE, at=at, pid=None),
    ]


def process_started(world: World, run: Run, pid: int, *, at: float) -> list[Fact]:
    """Recorded only while this very step is under way; a late report of an ended one is nothing."""
    now, agent = world.runs[run.id], world.agents[str(run.agent)]
    if agent.run != run.id or not now.stepping or now.attempt != run.attempt:
        return []
    return [noted(agent, "process_started", at=at, pid=pid)]


def _leave_withdrawn(world: World, run: Run, *, at: float) -> list[Fact]:
    """The step that asked to use a tool has ended, and the next attempt asks again."""
    return [
        moved(question, "withdrawn", to=QuestionState.WITHDRAWN, at=at)
        for question in world.questions.values()
        if question.is_open and question.run == run.id and question.about == About.PERMISSION
    ]


def _messages_given(world: World, run: Run, step: str, *, at: float) -> list[Fact]:
    return [
        given(message, step, at=at)
        for message in messages_for(world, run.task)
        if message.state == MessageState.QUEUED
    ]


def given(message: Message, step: str, *, at: float) -> Fact:
    return moved(message, "given", to=MessageState.GIVEN, at=at, step=step)


def messages_for(world: World, task: str) -> list[Message]:
    """The messages that no agent has read yet, the oldest first."""
    unread = [
        message
        for message in world.messages.values()
        if message.task == task and message.state != MessageState.READ
    ]
    return sorted(unread, key=lambda message: message.at)


def messages_read(world: World, run: Run, *, at: float) -> list[Fact]:
    """The step ended well: what it was given is read."""
    return [
        moved(message, "read", to=MessageState.READ, at=at)
        for message in messages_for(world, run.task)
        if message.state == MessageState.GIVEN
    ]


def step_ended(
    world: World, run: Run, lead: Lead, outcome: StepOutcome, *, rules: Rules, at: float
) -> list[Fact]:
    """What it means for the run, for its agent, and for whatever leads it."""
    outcome = lead.judge_step(world, run, outcome)
    draft = FactDraft(world)
    draft.add(*_step_ended(world, run, outcome, rules=rules, at=at))
    draft.add(*lead.after_step(draft.world, run, outcome, rules=rules, at=at))
    return draft.facts


def _step_ended(
    world: World, run: Run, outcome: StepOutcome, *, rules: Rules, at: float
) -> list[Fact]:
    """What the step said of itself counts, also if its process came to a bad end after that."""
    withdrawn = _leave_withdrawn(world, run, at=at)
    if outcome.error is not None and not run.signal:
        return [*_step_failed(world, run, outcome, rules=rules, at=at), *withdrawn]
    went_well = [
        *messages_read(world, run, at=at),
        *served(world, rules.provider(run.agent_kind), at=at),
        *withdrawn,
    ]
    if run.signal == SignalKind.NEEDS_USER_INPUT:
        return [*_parked(world, run, outcome, at=at), *went_well]
    return [*_went_on(world, run, outcome, rules=rules, at=at), *went_well]


def _went_on(
    world: World, run: Run, outcome: StepOutcome, *, rules: Rules, at: float
) -> list[Fact]:
    agent = world.agents[str(run.agent)]
    partly = run.signal == SignalKind.PARTIALLY_COMPLETE
    said = _renewed(run) if partly else {"ask": Ask.CONTINUE, "notes": ""}
    facts = [_step_recorded(run, outcome, at=at, told="", fresh_retry=False, **said)]
    used = outcome.usage.added_to(agent)
    settled = {"error_count": 0, "last_error": "", "last_step_at": at, "pid": None, **used}
    trigger = _end_of_round(run, outcome, rules)
    if trigger is None:
        return [*facts, noted(agent, "step_ended", at=at, **settled)]
    return [
        *facts,
        moved(
            run,
            trigger,
            to=RunState.REVIEWING,
            at=at,
            out_of_steps=trigger == "step_limit",
        ),
        moved(agent, trigger, to=AgentState.DONE, at=at, **settled),
    ]


def _parked(world: World, run: Run, outcome: StepOutcome, *, at: float) -> list[Fact]:
    """Only a person can help: the process has ended, the slot is free, the session is kept."""
    agent = world.agents[str(run.agent)]
    return [
        _step_recorded(run, outcome, at=at, agent=None, told="", fresh_retry=False),
        freed(agent, "parked", at=at, last_step_at=at, **outcome.usage.added_to(agent)),
    ]


def _renewed(run: Run) -> dict[str, Any]:
    """A new session in the same role: where to go on, and what the branch holds."""
    return {
        "session": "",
        "session_used": False,
        "session_number": run.session_number + 1,
        "ask": Ask.PARTIAL,
        "notes": quoted(run.signal_notes),
    }


def _end_of_round(run: Run, outcome: StepOutcome, rules: Rules) -> str | None:
    if run.signal == SignalKind.COMPLETE or (outcome.done and not run.signal):
        return "done"
    return "step_limit" if run.step >= rules.max_steps else None


def _step_recorded(run: Run, outcome: StepOutcome, *, at: float, **changes: Any) -> Fact:
    error = outcome.error
    return Fact(
        kind=run.kind,
        subject=run.id,
        trigger="step_ended",
        at=at,
        changes={
            "stepping": False,
            "signal": "",
            "signal_notes": "",
            "session": outcome.session,
            "session_used": True,
            **outcome.usage.added_to(run),
            **changes,
        },
        extra={"step": run.step, "error": error.kind if error else None},
    )


def _step_failed(
    world: World, run: Run, outcome: StepOutcome, *, rules: Rules, at: float
) -> list[Fact]:
    agent, error = world.agents[str(run.agent)], outcome.error
    assert error is not None
    used = {"last_step_at": at, **outcome.usage.added_to(agent)}
    fresh = error.kind in FRESH_SESSION
    changes = _fresh_session(run, error) if fresh else {}
    # A step that failed is none of the steps a round has: errors have a limit of their own.
    changes["step"] = run.step - 1
    if error.kind == ErrorKind.RATE_LIMIT:
        return [
            _step_recorded(run, outcome, at=at, agent=None, **changes),
            freed(agent, "parked", at=at, **used),
            limited(world, rules.provider(run.agent_kind), error, rules, at=at),
        ]
    ended = _step_recorded(run, outcome, at=at, **changes)
    used["pid"] = None
    if fresh and not run.fresh_retry:
        return [ended, noted(agent, "session_renewed", at=at, last_error=error.message, **used)]
    if error.kind == ErrorKind.NOT_INSTALLED:
        return [ended, _stuck_without_program(agent, error.message, at=at, **used)]
    return [ended, _error_counted(agent, error.message, rules=rules, at=at, **used)]


def _stuck_without_program(agent: Agent, message: str, *, at: float, **changes: Any) -> Fact:
    """Another try would fail in the same way until a person does something."""
    ways_out = (
        f"its program is missing: install it, or choose another agent: "
        f"`crew agents set {agent.id} KIND`, then `crew kill {agent.id}`"
    )
    return moved(
        agent,
        "errors",
        to=AgentState.STUCK,
        at=at,
        error_count=agent.error_count + 1,
        last_error=f"{ways_out} ({message})",
        retry_at=None,
        **changes,
    )


def _fresh_session(run: Run, error: StepError) -> dict[str, Any]:
    """A new session does not know what was said: it is told what the branch holds."""
    knows_nothing = run.session_used or error.kind != ErrorKind.SESSION_IN_USE
    asks = {
        Ask.CONTINUE: Ask.RESUMED,
        Ask.FIRST: Ask.RESUMED,
        Ask.NO_SIGNAL: Ask.RESUMED,
        Ask.ANSWER: Ask.PARTIAL,
        Ask.FOLLOWED: Ask.PARTIAL,
    }
    return {
        "session": "",
        "session_used": False,
        "session_number": run.session_number + 1,
        "fresh_retry": True,
        "ask": asks.get(Ask(run.ask), run.ask) if knows_nothing else run.ask,
    }


def _error_counted(agent: Agent, message: str, *, rules: Rules, at: float, **changes: Any) -> Fact:
    """Stuck at the fifth error in a row; after a manual retry again at the tenth, and so on."""
    errors = one_more_error(agent.error_count, limit=rules.stuck_after)
    values = {
        "error_count": errors.count,
        "last_error": message,
        "retry_at": at + rules.backoff(errors.count),
        **changes,
    }
    if errors.ends_here:
        return moved(agent, "errors", to=AgentState.STUCK, at=at, **values)
    return noted(agent, "error", at=at, **values)


def troubled(
    world: World, run: Run, lead: Lead, message: str, *, rules: Rules, at: float
) -> list[Fact]:
    """crew itself could not do its part (no worktree, no gate program): an error like any other."""
    agent = agent_of(world, run)
    if agent is None:
        return []
    errors = one_more_error(agent.error_count, limit=rules.stuck_after)
    if agent.state == AgentState.DONE and errors.is_spent:
        return lead.cannot_go_on(world, run, message, at=at)
    return [_error_counted(agent, message, rules=rules, at=at)]
