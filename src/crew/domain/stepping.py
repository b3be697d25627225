"""What follows from a step of an agent: how it began and how it ended."""

from collections.abc import Mapping
from typing import Any

from crew.domain.agent import Agent, AgentState
from crew.domain.fact import Fact
from crew.domain.progress import agent_of, failed
from crew.domain.rules import Rules
from crew.domain.run import Ask, Run, RunState
from crew.domain.step import ErrorKind, StepError, StepOutcome, Usage
from crew.domain.world import World, moved, noted

_FRESH_SESSION = frozenset(
    {
        ErrorKind.SESSION_IN_USE,
        ErrorKind.SESSION_UNKNOWN,
        ErrorKind.TIMEOUT,
        ErrorKind.STALLED,
        ErrorKind.CONTEXT_FULL,
    }
)
"""Errors that are answered once with a new session, at once and without counting."""


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
        ),
        moved(agent, "step_started", to=AgentState.WORKING, at=at, retry_at=None),
    ]


def step_ended(
    world: World, run: Run, outcome: StepOutcome, *, rules: Rules, at: float
) -> list[Fact]:
    agent = world.agents[str(run.agent)]
    if outcome.error is not None:
        return _step_failed(agent, run, outcome, rules=rules, at=at)
    facts = [
        _step_recorded(run, outcome, at=at, ask=Ask.CONTINUE, notes="", told="", fresh_retry=False)
    ]
    used = _usage(agent, outcome.usage)
    settled = {"error_count": 0, "last_error": "", "last_step_at": at, "pid": None, **used}
    trigger = _end_of_round(run, outcome, rules)
    if trigger is None:
        return [*facts, noted(agent, "step_ended", at=at, **settled)]
    return [
        *facts,
        moved(run, trigger, to=RunState.REVIEWING, at=at),
        moved(agent, trigger, to=AgentState.DONE, at=at, **settled),
    ]


def _end_of_round(run: Run, outcome: StepOutcome, rules: Rules) -> str | None:
    if outcome.done:
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
            "session": outcome.session,
            "session_used": True,
            **_usage(run, outcome.usage),
            **changes,
        },
        extra={"step": run.step, "error": error.kind if error else None},
    )


def _usage(row: Run | Agent, usage: Usage) -> Mapping[str, Any]:
    known = row.cost_usd is not None and usage.cost_usd is not None
    return {
        "input_tokens": row.input_tokens + usage.input_tokens,
        "output_tokens": row.output_tokens + usage.output_tokens,
        "cost_usd": (row.cost_usd or 0.0) + (usage.cost_usd or 0.0) if known else None,
    }


def _step_failed(
    agent: Agent, run: Run, outcome: StepOutcome, *, rules: Rules, at: float
) -> list[Fact]:
    error = outcome.error
    assert error is not None
    used = {"last_step_at": at, "pid": None, **_usage(agent, outcome.usage)}
    fresh = error.kind in _FRESH_SESSION
    changes = _fresh_session(run, error) if fresh else {}
    # A step that failed is none of the steps a round has: errors have a limit of their own.
    ended = _step_recorded(run, outcome, at=at, step=run.step - 1, **changes)
    if error.kind == ErrorKind.RATE_LIMIT:
        until = max(at, error.reset_at or at + rules.max_backoff_s)
        return [
            ended,
            noted(agent, "rate_limited", at=at, retry_at=until, last_error=error.message, **used),
        ]
    if fresh and not run.fresh_retry:
        return [ended, noted(agent, "session_renewed", at=at, last_error=error.message, **used)]
    return [ended, _error_counted(agent, error.message, rules=rules, at=at, **used)]


def _fresh_session(run: Run, error: StepError) -> dict[str, Any]:
    """A new session does not know what was said: it is told what the branch holds."""
    knows_nothing = run.session_used or error.kind != ErrorKind.SESSION_IN_USE
    keeps_ask = run.ask not in {Ask.CONTINUE, Ask.FIRST}
    return {
        "session": "",
        "session_used": False,
        "session_number": run.session_number + 1,
        "fresh_retry": True,
        "ask": run.ask if keeps_ask or not knows_nothing else Ask.RESUMED,
    }


def _error_counted(agent: Agent, message: str, *, rules: Rules, at: float, **changes: Any) -> Fact:
    """Stuck at the fifth error in a row; after a manual retry again at the tenth, and so on."""
    errors = agent.error_count + 1
    values = {
        "error_count": errors,
        "last_error": message,
        "retry_at": at + rules.backoff(errors),
        **changes,
    }
    if errors % rules.stuck_after == 0:
        return moved(agent, "errors", to=AgentState.STUCK, at=at, **values)
    return noted(agent, "error", at=at, **values)


def troubled(world: World, run: Run, message: str, *, rules: Rules, at: float) -> list[Fact]:
    """crew itself could not do its part (no worktree, no gate program): an error like any other."""
    agent = agent_of(world, run)
    if agent is None:
        return []
    if agent.state == AgentState.DONE and agent.error_count + 1 >= rules.stuck_after:
        return failed(world, run, message, at=at)
    return [_error_counted(agent, message, rules=rules, at=at)]
