"""The rules of turns: who gets the next one, how it ends, and what ends it when nobody does."""

from typing import Any

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

INTERRUPTED = "a person's word"
"""What a member waits for whose turn a person interrupted."""

_OVER = {"turn_ends_at": None, "wait_ends_at": None, "waits_for": "", "said_at": None}


def settle(draft: ChannelDraft) -> None:
    """Whatever follows at once in an open channel, until nothing does."""
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
    """Whatever follows in an open channel from time alone: heartbeats, time-outs, silence."""
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
    """When time alone may change something for this member."""
    found = (
        heartbeat_deadline(channel, member),
        silence_deadline(channel, member),
        member.turn_ends_at,
        member.wait_ends_at,
    )
    return [at for at in found if at is not None]


def heartbeat_deadline(channel: Channel, member: Member) -> float | None:
    """Crew itself starts a driven member, which therefore needs no heartbeat."""
    if member.is_driven or member.state not in ONLINE or not channel.is_open:
        return None
    return member.heartbeat_at + channel.heartbeat_s


def silence_deadline(channel: Channel, member: Member) -> float | None:
    if not channel.detects_turn_end or member.state != TurnState.ACTIVE or member.is_driven:
        return None
    return None if member.said_at is None else member.said_at + channel.silence_s


def enqueue(draft: ChannelDraft, name: str, **changes: Any) -> None:
    """At the end; who was away has no more turns to come than those who stayed."""
    fewest = min((one.turns for one in draft.members() if one.takes_part), default=0)
    turns = max(fewest, draft.member(name).turns)
    draft.move(name, "assigned_to_channel", to=TurnState.QUEUED, turns=turns, **changes)


def grant(draft: ChannelDraft, name: str) -> None:
    """A driven member's time begins with its step: it may have nothing to answer yet."""
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
    draft: ChannelDraft, name: str, trigger: str, *, extra: Any = None, **changes: Any
) -> None:
    """Back to the end of the queue; somebody who is alone and heard everything is idle."""
    member = draft.member(name)
    alone = draft.channel.mode == Mode.SINGLE and trigger == "turn_complete"
    to = TurnState.IDLE if alone and not has_news(draft.world, member) else TurnState.QUEUED
    values = {**_OVER, "turns": member.turns + 1, **changes}
    draft.move(name, trigger, to=to, extra=extra, **values)


def resume(draft: ChannelDraft, name: str, trigger: str = "wait_resolved") -> None:
    """The turn goes on, with all its time."""
    member = draft.member(name)
    ends_at = None if member.is_driven else turn_deadline(draft, member)
    values = {**_OVER, "turn_ends_at": ends_at}
    draft.move(name, trigger, to=TurnState.ACTIVE, **values)


def lost(draft: ChannelDraft, name: str, reason: str) -> None:
    """It crashed or went away; when it comes back it is idle until somebody assigns it."""
    state = draft.member(name).state
    trigger = {
        TurnState.ACTIVE: "agent_crashes",
        TurnState.IDLE: "agent_stops",
    }.get(TurnState(state), "agent_disconnects")
    values = {**_OVER, "assigned": False, "last_error": reason}
    draft.move(name, trigger, to=TurnState.OFFLINE, extra={"reason": reason}, **values)
    _announce_leaving(draft, name, "disconnected", was=state)


def disable(draft: ChannelDraft, name: str) -> None:
    """Offline by a person's wish, until a person enables it; it stays assigned if it was."""
    state = draft.member(name).state
    if state == TurnState.OFFLINE:
        draft.note(name, "disabled", disabled=True)
        return
    draft.move(name, "disabled", to=TurnState.OFFLINE, disabled=True, was_late=False, **_OVER)
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
    """What people said during a turn is delivered when it is over."""
    if draft.channel.held and not _is_mid_turn(draft):
        for post in take_held(draft):
            people_said(draft, post.sender, post.text, to=post.to)


def take_held(draft: ChannelDraft) -> tuple[HeldPost, ...]:
    """The posts of people during a turn, which are held no longer."""
    held = draft.channel.held_posts
    if held:
        draft.change("released", held=())
    return held


def people_said(draft: ChannelDraft, sender: str, text: str, *, to: tuple[str, ...] = ()) -> None:
    """A person's word: everybody has all turns again, and whoever waits for words goes on."""
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
    """It has the turn and makes something of it; a CLI that was not called yet does not."""
    return member.state == TurnState.WAITING or (
        member.state == TurnState.ACTIVE and (not member.is_driven or member.speaking)
    )


def _wake_single(draft: ChannelDraft) -> None:
    """Whoever is alone in a channel is idle until there is something to answer."""
    if draft.channel.mode != Mode.SINGLE:
        return
    for member in draft.members():
        if member.state == TurnState.IDLE and member.assigned and has_news(draft.world, member):
            enqueue(draft, member.name)


def _yield_floor(draft: ChannelDraft) -> None:
    """Who has the turn and nothing to answer leaves it to somebody who has something to say."""
    holder = draft.channel.holder
    if not holder or draft.channel.order == TurnOrder.MANUAL:
        return
    member = draft.member(holder)
    if member.state != TurnState.ACTIVE or can_speak(draft.world, member):
        return
    others = (draft.member(name) for name in draft.channel.queue if _may_be_next(draft, name))
    if any(can_speak(draft.world, other) for other in others):
        turns = member.turns  # nothing was said, so that it counts as no turn
        draft.move(
            holder, "turn_complete", to=TurnState.QUEUED, extra={"said": "nothing"}, turns=turns
        )


def _next(draft: ChannelDraft) -> str:
    """The next in the order; one without anything to answer only if all others have nothing."""
    channel = draft.channel
    if channel.order == TurnOrder.MANUAL:
        return ""
    found = [draft.member(name) for name in channel.queue if _may_be_next(draft, name)]
    if channel.order == TurnOrder.PRIORITY:
        found.sort(key=lambda one: (one.turns, -one.priority))
    speaking = [one for one in found if can_speak(draft.world, one)]
    return next((one.name for one in speaking or found), "")


def _may_be_next(draft: ChannelDraft, name: str) -> bool:
    """It has turns left, and no step of an earlier turn still runs."""
    rounds, member = draft.channel.rounds, draft.member(name)
    return not member.is_late and (rounds is None or member.turns < rounds)


def _has_passed(draft: ChannelDraft, deadline: float | None) -> bool:
    return deadline is not None and deadline <= draft.at
