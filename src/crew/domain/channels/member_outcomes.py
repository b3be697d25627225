"""What follows from the step of a driven member: it started, it posted, it failed."""

from typing import TYPE_CHECKING, Unpack

from crew.domain.channels.channel_draft import ChannelDraft
from crew.domain.channels.posts import addressed, shortened, without_signal, words_of_people
from crew.domain.channels.turns import INTERRUPTED, end_turn, lost, resume, settle, turn_deadline
from crew.domain.kernel.error_row import ErrorRow, one_more_error
from crew.domain.kernel.fact import Fact
from crew.domain.provider_limits import PAUSING, paused, served
from crew.domain.rows.channel import Interrupting, Member, TurnState
from crew.domain.rows.step import (
    FRESH_SESSION,
    LASTING,
    ErrorKind,
    LostCost,
    StepError,
    StepOutcome,
)
from crew.domain.rules import Rules
from crew.domain.world import World, noted

if TYPE_CHECKING:
    from crew.domain.field_groups import MemberChanges

CRASHES_AFTER = 3
"""Errors in a row after which a driven member is offline until a person assigns it again."""


def turn_started(world: World, member: Member, *, session: str, at: float) -> list[Fact]:
    """Record the step before its process starts, so that it gets each post only once."""
    draft = ChannelDraft(world, member.channel, at=at)
    draft.note(
        member.name,
        "turn_started",
        speaking=True,
        owes_answer=True,
        housed=True,
        attempt=member.attempt + 1,
        steps=member.steps + 1,
        session=session,
        given=draft.channel.sequence,
        heard=(),
        turn_ends_at=turn_deadline(draft, member),
        **_lost_cost(member),
    )
    return draft.facts


def _lost_cost(member: Member) -> LostCost:
    """The cost is unknown if crew ended its step, or died during it: no figures were reported."""
    return {"cost_usd": None} if member.speaking else {}


def heard(member: Member, sequence: int, *, at: float) -> list[Fact]:
    """Record that a post reached the member during its step; an ended step is ignored."""
    if not member.speaking or sequence <= member.given or sequence in member.heard:
        return []
    return [noted(member, "heard", at=at, heard=(*member.heard, sequence))]


def turn_spoken(
    world: World, member_id: str, outcome: StepOutcome, *, turn: int, rules: Rules, at: float
) -> list[Fact]:
    """Record the end of the step of this turn; another member may have the turn by now."""
    member = world.members[member_id]
    draft = ChannelDraft(world, member.channel, at=at)
    had_turn = member.turn == turn and member.state in {TurnState.ACTIVE, TurnState.WAITING}
    if outcome.error is not None:
        _failed(draft, member, outcome, outcome.error, rules, had_turn=had_turn)
    else:
        _spoken(draft, member, outcome, had_turn=had_turn)
        draft.add(*served(world, member.agent_kind, rules, at=at))
    settle(draft)
    return draft.facts


def vacated(member: Member, *, at: float) -> list[Fact]:
    """Record that the member's worktree was removed; it still owes its answer."""
    return [noted(member, "vacated", at=at, housed=False, speaking=False, **_lost_cost(member))]


def turn_troubled(
    world: World, member_id: str, message: str, *, rules: Rules, at: float
) -> list[Fact]:
    """Record that crew could not call the CLI (no such agent, no worktree) as an error."""
    member = world.members[member_id]
    error = StepError(kind=ErrorKind.CRASHED, message=message)
    outcome = StepOutcome(session=member.session, error=error)
    return turn_spoken(world, member_id, outcome, turn=member.turn, rules=rules, at=at)


def _spoken(draft: ChannelDraft, member: Member, outcome: StepOutcome, *, had_turn: bool) -> None:
    name = member.name
    _record(
        draft,
        member,
        outcome,
        owes_answer=False,
        session_used=True,
        fresh_retry=False,
        errors=0,
        last_error="",
        acknowledged=max((member.given, *member.heard)),
    )
    text = shortened(without_signal(outcome.text)[0])
    if text.strip() and draft.channel.is_open:
        draft.post(name, text, to=addressed(text, draft.channel.members), late=not had_turn)
    if had_turn:
        _end_or_continue_turn(draft, draft.member(name))


def _end_or_continue_turn(draft: ChannelDraft, member: Member) -> None:
    """End the turn, unless it was interrupted, waits, or has an unread post of a person."""
    if member.state == TurnState.WAITING:
        if member.waits_for == INTERRUPTED:
            resume(draft, member.name)
        return
    injects = draft.channel.interrupting == Interrupting.INJECT
    if injects and words_of_people(draft.world, member):
        draft.note(member.name, "goes_on", turn_ends_at=None)
        return
    end_turn(draft, member.name, "turn_complete")


def _failed(
    draft: ChannelDraft,
    member: Member,
    outcome: StepOutcome,
    error: StepError,
    rules: Rules,
    *,
    had_turn: bool,
) -> None:
    name = member.name
    if error.kind in FRESH_SESSION and not member.fresh_retry:
        _record(draft, member, outcome, **fresh_session(member))
    elif error.kind in PAUSING:
        _record(draft, member, outcome)
        facts = paused(draft.world, member.agent_kind, error, rules, at=draft.at)
        draft.add(*facts)
        if facts and error.kind in LASTING:
            draft.announce(f"⚠️ {name}: {error.message}")
    else:
        errors = one_more_error(member.errors, limit=CRASHES_AFTER)
        _record(draft, member, outcome, errors=errors.count, last_error=error.message)
        if had_turn or member.takes_part:
            _announce_error(draft, draft.member(name), error.message, errors, had_turn=had_turn)
        return
    if had_turn and draft.member(name).waits_for == INTERRUPTED:
        resume(draft, name)


def _announce_error(
    draft: ChannelDraft, member: Member, message: str, errors: ErrorRow, *, had_turn: bool
) -> None:
    draft.announce(f"⚠️ {member.name}: {message}")
    if errors.is_spent:
        lost(draft, member.name, message)
    elif had_turn:
        if member.state == TurnState.WAITING:
            resume(draft, member.name)
        end_turn(draft, member.name, "step_failed")


def fresh_session(member: Member) -> "MemberChanges":
    """The fields for a new session, which gets the conversation from its beginning."""
    return {
        "session": "",
        "session_used": False,
        "session_number": member.session_number + 1,
        "fresh_retry": True,
        "given": 0,
        "heard": (),
    }


def _record(
    draft: ChannelDraft, member: Member, outcome: StepOutcome, **changes: "Unpack[MemberChanges]"
) -> None:
    values: MemberChanges = {
        "speaking": False,
        "turn_ends_at": None,
        "session": outcome.session,
        **outcome.usage.added_to(member),
        **changes,
    }
    draft.note(member.name, "step_ended", **values)
