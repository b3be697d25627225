"""What follows when the step of a role ends: what its signal or its error does to the position."""

from dataclasses import replace

from crew.domain.kernel.error_row import one_more_error
from crew.domain.kernel.fact import Fact
from crew.domain.provider_limits import PAUSING
from crew.domain.quests.position import acting, role_of
from crew.domain.quests.role_entry import blocked, retries, told
from crew.domain.quests.role_requests import followed
from crew.domain.quests.role_sessions import session_dropped, session_kept
from crew.domain.rows.agent import AgentState
from crew.domain.rows.quest import ItemState
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.step import FRESH_SESSION, ErrorKind, SignalKind, StepError, StepOutcome
from crew.domain.rules import Rules
from crew.domain.runs.run_holder import agent_of
from crew.domain.world import FactDraft, World, moved, noted


def judged(run: Run, outcome: StepOutcome) -> StepOutcome:
    """The outcome of a role's step; an end without a signal counts as a crash."""
    if run.signal or outcome.done or outcome.error is not None:
        return outcome
    return replace(outcome, error=StepError(kind=ErrorKind.CRASHED, message=_silence(run)))


def _silence(run: Run) -> str:
    return f"{run.role} ended its turn without a signal"


def after_step(
    world: World, before: Run, outcome: StepOutcome, *, rules: Rules, at: float
) -> list[Fact]:
    """What a step means for its position; `world` already holds the end of the step itself."""
    if outcome.error is not None and not before.signal:
        return _errored(world, before, outcome.error, rules=rules, at=at)
    draft = FactDraft(world)
    signal = before.signal or SignalKind.COMPLETE
    words = before.signal_notes or outcome.text
    draft.add(told(world, before.task, before.role, signal, words, session=before.session, at=at))
    position = acting(draft.world, before.task)
    if signal == SignalKind.NEEDS_USER_INPUT:
        draft.add(*_asked(draft.world, before, at=at))
    if signal == SignalKind.PARTIALLY_COMPLETE:
        draft.add(moved(position, "partially_complete", to=ItemState.PARTIALLY_COMPLETE, at=at))
        position = acting(draft.world, before.task)
        draft.add(moved(position, "slot_assigned", to=ItemState.IN_PROGRESS, at=at))
        if draft.world.runs[before.id].state == RunState.REVIEWING:
            reason = f"{before.role} used {rules.max_steps} sessions and is not finished"
            draft.add(*blocked(draft.world, draft.world.runs[before.id], reason, at=at))
    if signal == SignalKind.NEEDS_ROLE_FOLLOWUP:
        draft.add(*followed(draft.world, before, at=at))
    if signal == SignalKind.COMPLETE:
        draft.add(*session_kept(draft.world, draft.world.runs[before.id], rules=rules, at=at))
    return draft.facts


def _asked(world: World, before: Run, *, at: float) -> list[Fact]:
    """Let the position wait for a person, unless the answer came while the step still ran."""
    position = acting(world, before.task)
    draft = FactDraft(world)
    draft.add(moved(position, "needs_user_input", to=ItemState.WAITING_FOR_USER, at=at))
    if not world.runs[before.id].question:
        position = draft.world.positions[position.id]
        draft.add(moved(position, "answered", to=ItemState.IN_PROGRESS, at=at))
    return draft.facts


def _errored(world: World, run: Run, error: StepError, *, rules: Rules, at: float) -> list[Fact]:
    """Count the errors in a row, and ask a person when the limit is reached."""
    if error.kind in PAUSING:
        return []
    base = world.positions[run.task]
    limit = min(retries(role_of(world, run)), rules.stuck_after - 2) + 1
    failures = one_more_error(base.failures, limit=limit)
    draft = FactDraft(world)
    draft.add(noted(base, "role_failed", at=at, failures=failures.count))
    if error.kind in FRESH_SESSION:
        draft.add(*session_dropped(draft.world, run, at=at))
    if error.message == _silence(run):
        draft.add(noted(draft.world.runs[run.id], "said_nothing", at=at, ask=Ask.NO_SIGNAL))
    agent = agent_of(world, run)
    if not failures.is_spent or agent is None or agent.state == AgentState.STUCK:
        return draft.facts
    reason = f"{run.role} failed {failures.count} times in a row: {error.message}"
    draft.add(*blocked(draft.world, draft.world.runs[run.id], reason, at=at))
    return draft.facts
