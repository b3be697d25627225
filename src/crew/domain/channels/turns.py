"""The rules of turns: which member is next, how a turn ends, and which time-outs end it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

from crew.domain.channels.channel_draft import ALL_AT_ONCE, ChannelDraft
from crew.domain.channels.council import decide_council
from crew.domain.channels.posts import can_speak, has_news
from crew.domain.rows.channel import (
    ONLINE,
    Author,
    Channel,
    HeldPost,
    Member,
    Mode,
    TurnOrder,
    TurnState,
)

if TYPE_CHECKING:
    from crew.domain.field_groups import MemberChanges

INTERRUPTED = "a person's word"
"""The reason that a member waits for after a person interrupted its turn."""

_OVER: "MemberChanges" = {
    "turn_ends_at": None,
    "wait_ends_at": None,
    "waits_for": "",
    "said_at": None,
}


def settle(draft: ChannelDraft) -> None:
    """Add everything that follows at once in an open channel."""
    if not draft.channel.is_open:
        return
    _release(draft)
    _wake_single(draft)
    if decide_council(draft):
        return
    if draft.channel.mode in ALL_AT_ONCE:
        for name in draft.channel.queue:
            if can_speak(draft.world, draft.member(name)) and _may_be_next(draft, name):
                grant(draft, name)
        return
    _yield_floor(draft)
    if not draft.channel.holder and (name := _next(draft)):
        grant(draft, name)


def lapse(draft: ChannelDraft) -> None:
    """Add everything that follows from time alone: missed heartbeats, time-outs, silence."""
    for name in draft.channel.members:
        member = draft.member(name)
        if _has_passed(draft, heartbeat_deadline(draft.channel, member)):
            lost(draft, name, "heartbeat missed")
        elif member.state == TurnState.ACTIVE and _has_passed(draft, member.turn_ends_at):
            _time_out(draft, member)
        elif member.state == TurnState.WAITING and _has_passed(draft, member.wait_ends_at):
            end_turn(draft, name, "wait_timeout")
        elif _has_passed(draft, silence_deadline(draft.channel, member)):
            end_turn(draft, name, "turn_complete", extra={"detected": "silence"})


def deadlines(channel: Channel, member: Member) -> list[float]:
    """The times at which time alone may change something for this member."""
    found = (
        heartbeat_deadline(channel, member),
        silence_deadline(channel, member),
        member.turn_ends_at,
        member.wait_ends_at,
    )
    return [at for at in found if at is not None]


def heartbeat_deadline(channel: Channel, member: Member) -> float | None:
    """When a heartbeat counts as missed; a driven member needs none."""
    if member.is_driven or member.state not in ONLINE or not channel.is_open:
        return None
    return member.heartbeat_at + channel.heartbeat_s


def silence_deadline(channel: Channel, member: Member) -> float | None:
    if not channel.detects_turn_end or member.state != TurnState.ACTIVE or member.is_driven:
        return None
    return None if member.said_at is None else member.said_at + channel.silence_s


def enqueue(draft: ChannelDraft, name: str, **changes: "Unpack[MemberChanges]") -> None:
    """Queue a member at the end, with no more turns left than the members that stayed."""
    fewest = min((one.turns for one in draft.members() if one.takes_part), default=0)
    turns = max(fewest, draft.member(name).turns)
    values: MemberChanges = {"turns": turns, **changes}
    draft.move(name, "assigned_to_channel", to=TurnState.QUEUED, **values)


def grant(draft: ChannelDraft, name: str) -> None:
    """Give the turn to a member; the time of a driven member begins with its step."""
    member = draft.member(name)
    draft.move(
        name,
        "turn_granted",
        to=TurnState.ACTIVE,
        turn=member.turn + 1,
        turn_ends_at=None if member.is_driven else turn_deadline(draft, member),
        said_at=None,
        was_late=False,
    )


def turn_deadline(draft: ChannelDraft, member: Member) -> float:
    return draft.at + (member.timeout_s or draft.channel.timeout_s)


def end_turn(
    draft: ChannelDraft,
    name: str,
    trigger: str,
    *,
    extra: Mapping[str, object] | None = None,
    **changes: "Unpack[MemberChanges]",
) -> None:
    """Move the member to the end of the queue; a single member without news is idle."""
    member = draft.member(name)
    alone = draft.channel.mode == Mode.SINGLE and trigger == "turn_complete"
    to = TurnState.IDLE if alone and not has_news(draft.world, member) else TurnState.QUEUED
    values: MemberChanges = {**_OVER, "turns": member.turns + 1, **changes}
    draft.move(name, trigger, to=to, extra=extra, **values)


def resume(draft: ChannelDraft, name: str, trigger: str = "wait_resolved") -> None:
    """Continue a turn with its full time."""
    member = draft.member(name)
    ends_at = None if member.is_driven else turn_deadline(draft, member)
    values: MemberChanges = {**_OVER, "turn_ends_at": ends_at}
    draft.move(name, trigger, to=TurnState.ACTIVE, **values)


def lost(draft: ChannelDraft, name: str, reason: str) -> None:
    """Take a crashed or disconnected member offline; it must be assigned again."""
    state = draft.member(name).state
    trigger = {
        TurnState.ACTIVE: "agent_crashes",
        TurnState.IDLE: "agent_stops",
    }.get(TurnState(state), "agent_disconnects")
    values: MemberChanges = {**_OVER, "assigned": False, "last_error": reason}
    draft.move(name, trigger, to=TurnState.OFFLINE, extra={"reason": reason}, **values)
    _announce_leaving(draft, name, "disconnected", was=state)


def disable(draft: ChannelDraft, name: str) -> None:
    """Take a member offline until a person enables it; it stays assigned."""
    state = draft.member(name).state
    if state == TurnState.OFFLINE:
        draft.note(name, "disabled", disabled=True)
        return
    values: MemberChanges = {**_OVER, "disabled": True, "was_late": False}
    draft.move(name, "disabled", to=TurnState.OFFLINE, **values)
    _announce_leaving(draft, name, "disabled", was=state)


def _announce_leaving(draft: ChannelDraft, name: str, how: str, *, was: str) -> None:
    if not draft.channel.announces_disconnects or was == TurnState.IDLE:
        return
    skipped = ", skipping turn" if was != TurnState.QUEUED else ""
    draft.announce(f"⚠️ {name} {how}{skipped}")
    if not any(one.takes_part for one in draft.members()):
        draft.announce("⚠️ No agents available in this channel")


def _time_out(draft: ChannelDraft, member: Member) -> None:
    forgot = member.said_at is not None
    warning = {"warning": "completed response without TURN_COMPLETE"} if forgot else None
    end_turn(draft, member.name, "timeout", extra=warning, was_late=True)
    if draft.channel.announces_timeouts:
        draft.announce(f"⏱️ {member.name} turn timed out")


def _release(draft: ChannelDraft) -> None:
    """Deliver the posts that were held during a turn once the turn has ended."""
    if draft.channel.held and not _is_mid_turn(draft):
        for post in take_held(draft):
            people_said(draft, post.sender, post.text, to=post.to)


def take_held(draft: ChannelDraft) -> tuple[HeldPost, ...]:
    """Remove and return the posts of people that were held during a turn."""
    held = draft.channel.held_posts
    if held:
        draft.change("released", held=())
    return held


def people_said(draft: ChannelDraft, sender: str, text: str, *, to: tuple[str, ...] = ()) -> None:
    """Add the post of a person, reset all turn counts, and resume members that wait."""
    draft.post(sender, text, author=Author.PERSON, to=to)
    for member in draft.members():
        if member.turns:
            draft.note(member.name, "heard_person", turns=0)
        if member.state == TurnState.WAITING and member.waits_for != INTERRUPTED:
            resume(draft, member.name)
    if draft.channel.decision:
        draft.change("reopened", decision="", agreed=False)


def _is_mid_turn(draft: ChannelDraft) -> bool:
    return any(is_mid_turn(one) for one in draft.members())


def is_mid_turn(member: Member) -> bool:
    """Whether it uses its turn now; a driven member does so once its CLI was called."""
    return member.state == TurnState.WAITING or (
        member.state == TurnState.ACTIVE and (not member.is_driven or member.speaking)
    )


def _wake_single(draft: ChannelDraft) -> None:
    """Queue the member of a single channel when there is something to answer."""
    if draft.channel.mode != Mode.SINGLE:
        return
    for member in draft.members():
        if member.state == TurnState.IDLE and member.assigned and has_news(draft.world, member):
            enqueue(draft, member.name)


def _yield_floor(draft: ChannelDraft) -> None:
    """Pass the turn on if its holder has nothing to answer and another member has."""
    holder = draft.channel.holder
    if not holder or draft.channel.order == TurnOrder.MANUAL:
        return
    member = draft.member(holder)
    if member.state != TurnState.ACTIVE or can_speak(draft.world, member):
        return
    others = (draft.member(name) for name in draft.channel.queue if _may_be_next(draft, name))
    if any(can_speak(draft.world, other) for other in others):
        turns = member.turns  # without a post it does not count as a turn
        draft.move(
            holder, "turn_complete", to=TurnState.QUEUED, extra={"said": "nothing"}, turns=turns
        )


def _next(draft: ChannelDraft) -> str:
    """The next member in the order; members with something to answer come first."""
    channel = draft.channel
    if channel.order == TurnOrder.MANUAL:
        return ""
    found = [draft.member(name) for name in channel.queue if _may_be_next(draft, name)]
    if channel.order == TurnOrder.PRIORITY:
        found.sort(key=lambda one: (one.turns, -one.priority))
    speaking = [one for one in found if can_speak(draft.world, one)]
    return next((one.name for one in speaking or found), "")


def _may_be_next(draft: ChannelDraft, name: str) -> bool:
    """Whether it has turns left and no step of an earlier turn still runs."""
    rounds, member = draft.channel.rounds, draft.member(name)
    return not member.is_late and (rounds is None or member.turns < rounds)


def _has_passed(draft: ChannelDraft, deadline: float | None) -> bool:
    return deadline is not None and deadline <= draft.at
