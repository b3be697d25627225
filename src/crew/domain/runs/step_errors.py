"""What follows when a step fails: a pause, a fresh session, another try, or a stuck agent."""

from typing import TYPE_CHECKING, Unpack

from crew.domain.kernel.error_row import one_more_error
from crew.domain.kernel.fact import Fact
from crew.domain.lead import Lead
from crew.domain.provider_limits import PAUSING, paused
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.step import (
    FRESH_SESSION,
    ErrorKind,
    StepError,
    StepOutcome,
)
from crew.domain.rules import Rules
from crew.domain.runs.run_holder import agent_of, freed
from crew.domain.world import World, moved, noted

if TYPE_CHECKING:
    from crew.domain.field_groups import StepSession, StepUse
    from crew.domain.row_changes import AgentFields, RunFields


def step_recorded(
    run: Run, outcome: StepOutcome, *, at: float, **changes: "Unpack[RunFields]"
) -> Fact:
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


def step_failed(
    world: World, run: Run, outcome: StepOutcome, *, rules: Rules, at: float
) -> list[Fact]:
    agent, error = world.agents[str(run.agent)], outcome.error
    assert error is not None
    used: StepUse = {"last_step_at": at, **outcome.usage.added_to(agent)}
    fresh = error.kind in FRESH_SESSION
    session: StepSession = _fresh_session(run, error) if fresh else {}
    # A failed step does not count as a step of its round, because errors have their own limit.
    step = run.step - 1
    if error.kind in PAUSING:
        return [
            step_recorded(run, outcome, at=at, step=step, agent=None, **session),
            freed(agent, "parked", at=at, **used),
            *paused(world, run.agent_kind, error, rules, at=at),
        ]
    ended = step_recorded(run, outcome, at=at, step=step, **session)
    if fresh and not run.fresh_retry:
        return [
            ended,
            noted(agent, "session_renewed", at=at, last_error=error.message, pid=None, **used),
        ]
    return [ended, _error_counted(agent, error.message, rules=rules, at=at, pid=None, **used)]


def _fresh_session(run: Run, error: StepError) -> "StepSession":
    knows_nothing = run.session_used or error.kind != ErrorKind.SESSION_IN_USE
    return new_session(run, knows_nothing=knows_nothing)


def new_session(run: Run, *, knows_nothing: bool) -> "StepSession":
    """The fields for a new session; its prompt describes the branch, since it knows nothing."""
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


def _error_counted(
    agent: Agent, message: str, *, rules: Rules, at: float, **changes: "Unpack[AgentFields]"
) -> Fact:
    """Count the error. The agent is stuck at the fifth in a row, after a retry at the tenth."""
    errors = one_more_error(agent.error_count, limit=rules.stuck_after)
    changes["error_count"] = errors.count
    changes["last_error"] = message
    changes["retry_at"] = at + rules.backoff(errors.count)
    if errors.ends_here:
        return moved(agent, "errors", to=AgentState.STUCK, at=at, **changes)
    return noted(agent, "error", at=at, **changes)


def troubled(
    world: World, run: Run, lead: Lead, message: str, *, rules: Rules, at: float
) -> list[Fact]:
    """Record that crew could not do its part (no worktree, no gate program) as an error."""
    agent = agent_of(world, run)
    if agent is None:
        return []
    errors = one_more_error(agent.error_count, limit=rules.stuck_after)
    if agent.state == AgentState.DONE and errors.is_spent:
        return lead.out_of_tries(world, run, message, at=at)
    return [_error_counted(agent, message, rules=rules, at=at)]
