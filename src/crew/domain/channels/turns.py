"""The rules of turns: who gets the next one, how it ends, and what ends it when nobody does."""

from typing import Any

from crew.domain.channels.channel_draft import ALL_AT_ONCE, Story
from crew.domain.channels.council import decide_council
from crew.domain.channels.posts import can_speak, has_news
from crew.domain.rows.channel import ONLINE, Author, Channel, Member, Mode, TurnOrder, TurnState

INTERRUPTED = "a person's word"
"""What a member waits for whose turn a person interrupted."""

_OVER = {"turn_ends_at": None, "wait_ends_at": None, "waits_for": "", "said_at": None}


def settle(story: Story) -> None:
    """Whatever follows at once in an open channel, until nothing does."""
    if not story.channel.is_open:
        return
    _release(story)
    _wake_single(story)
    if decide_council(story):
        return
    if story.channel.mode in ALL_AT_ONCE:
        for name in story.channel.queue:
            if can_speak(story.world, story.member(name)) and _may_be_next(story, name):
                grant(story, name)
        return
    _yield_floor(story)
    if not story.channel.holder and (name := _next(story)):
        grant(story, name)


def lapse(story: Story) -> None:
    """Whatever follows in an open channel from time alone: heartbeats, time-outs, silence."""
    for name in story.channel.members:
        member = story.member(name)
        if _has_passed(story, heartbeat_deadline(story.channel, member)):
            lost(story, name, "heartbeat missed")
        elif member.state == TurnState.ACTIVE and _has_passed(story, member.turn_ends_at):
            _time_out(story, member)
        elif member.state == TurnState.WAITING and _has_passed(story, member.wait_ends_at):
            end_turn(story, name, "wait_timeout")
        elif _has_passed(story, silence_deadline(story.channel, member)):
            end_turn(story, name, "turn_complete", extra={"detected": "silence"})


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


def enqueue(story: Story, name: str, **changes: Any) -> None:
    """At the end; who was away has no more turns to come than those who stayed."""
    fewest = min((one.turns for one in story.members() if one.takes_part), default=0)
    turns = max(fewest, story.member(name).turns)
    story.move(name, "assigned_to_channel", to=TurnState.QUEUED, turns=turns, **changes)


def grant(story: Story, name: str) -> None:
    """A driven member's time begins with its step: it may have nothing to answer yet."""
    member = story.member(name)
    story.move(
        name,
        "turn_granted",
        to=TurnState.ACTIVE,
        turn=member.turn + 1,
        turn_ends_at=None if member.is_driven else turn_deadline(story, member),
        said_at=None,
        was_late=False,
    )


def turn_deadline(story: Story, member: Member) -> float:
    return story.at + (member.timeout_s or story.channel.timeout_s)


def end_turn(story: Story, name: str, trigger: str, *, extra: Any = None, **changes: Any) -> None:
    """Back to the end of the queue; somebody who is alone and heard everything is idle."""
    member = story.member(name)
    alone = story.channel.mode == Mode.SINGLE and trigger == "turn_complete"
    to = TurnState.IDLE if alone and not has_news(story.world, member) else TurnState.QUEUED
    values = {**_OVER, "turns": member.turns + 1, **changes}
    story.move(name, trigger, to=to, extra=extra, **values)


def resume(story: Story, name: str, trigger: str = "wait_resolved") -> None:
    """The turn goes on, with all its time."""
    member = story.member(name)
    ends_at = None if member.is_driven else turn_deadline(story, member)
    values = {**_OVER, "turn_ends_at": ends_at}
    story.move(name, trigger, to=TurnState.ACTIVE, **values)


def lost(story: Story, name: str, reason: str) -> None:
    """It crashed or went away; when it comes back it is idle until somebody assigns it."""
    state = story.member(name).state
    trigger = {
        TurnState.ACTIVE: "agent_crashes",
        TurnState.IDLE: "agent_stops",
    }.get(TurnState(state), "agent_disconnects")
    values = {**_OVER, "assigned": False, "last_error": reason}
    story.move(name, trigger, to=TurnState.OFFLINE, extra={"reason": reason}, **values)
    _announce_leaving(story, name, "disconnected", was=state)


def disable(story: Story, name: str) -> None:
    """Offline by a person's wish, until a person enables it; it stays assigned if it was."""
    state = story.member(name).state
    if state == TurnState.OFFLINE:
        story.note(name, "disabled", disabled=True)
        return
    story.move(name, "disabled", to=TurnState.OFFLINE, disabled=True, was_late=False, **_OVER)
    _announce_leaving(story, name, "disabled", was=state)


def _announce_leaving(story: Story, name: str, how: str, *, was: str) -> None:
    if not story.channel.announces_disconnects or was == TurnState.IDLE:
        return
    skipped = ", skipping turn" if was != TurnState.QUEUED else ""
    story.announce(f"⚠️ {name} {how}{skipped}")
    if not any(one.takes_part for one in story.members()):
        story.announce("⚠️ No agents available in this channel")


def _time_out(story: Story, member: Member) -> None:
    forgot = member.said_at is not None
    warning = {"warning": "completed response without TURN_COMPLETE"} if forgot else None
    end_turn(story, member.name, "timeout", extra=warning, was_late=True)
    if story.channel.announces_timeouts:
        story.announce(f"⏱️ {member.name} turn timed out")


def _release(story: Story) -> None:
    """What people said during a turn is delivered when it is over."""
    if story.channel.held and not _is_mid_turn(story):
        for sender, text, to in take_held(story):
            people_said(story, sender, text, to=to)


def take_held(story: Story) -> list[tuple[str, str, tuple[str, ...]]]:
    """The words that people said during a turn: who, what and for whom; held no longer."""
    held = story.channel.held
    if held:
        story.change("released", held=())
    return [(sender, text, tuple(to)) for sender, text, _said_at, *to in held]


def people_said(story: Story, sender: str, text: str, *, to: tuple[str, ...] = ()) -> None:
    """A person's word: everybody has all turns again, and whoever waits for words goes on."""
    story.post(sender, text, author=Author.PERSON, to=to)
    for member in story.members():
        if member.turns:
            story.note(member.name, "heard_person", turns=0)
        if member.state == TurnState.WAITING and member.waits_for != INTERRUPTED:
            resume(story, member.name)
    if story.channel.decision:
        story.change("reopened", decision="", agreed=False)


def _is_mid_turn(story: Story) -> bool:
    return any(is_mid_turn(one) for one in story.members())


def is_mid_turn(member: Member) -> bool:
    """It has the turn and makes something of it; a CLI that was not called yet does not."""
    return member.state == TurnState.WAITING or (
        member.state == TurnState.ACTIVE and (not member.is_driven or member.speaking)
    )


def _wake_single(story: Story) -> None:
    """Whoever is alone in a channel is idle until there is something to answer."""
    if story.channel.mode != Mode.SINGLE:
        return
    for member in story.members():
        if member.state == TurnState.IDLE and member.assigned and has_news(story.world, member):
            enqueue(story, member.name)


def _yield_floor(story: Story) -> None:
    """Who has the turn and nothing to answer leaves it to somebody who has something to say."""
    holder = story.channel.holder
    if not holder or story.channel.order == TurnOrder.MANUAL:
        return
    member = story.member(holder)
    if member.state != TurnState.ACTIVE or can_speak(story.world, member):
        return
    others = (story.member(name) for name in story.channel.queue if _may_be_next(story, name))
    if any(can_speak(story.world, other) for other in others):
        turns = member.turns  # nothing was said, so that it counts as no turn
        story.move(
            holder, "turn_complete", to=TurnState.QUEUED, extra={"said": "nothing"}, turns=turns
        )


def _next(story: Story) -> str:
    """The next in the order; one without anything to answer only if all others have nothing."""
    channel = story.channel
    if channel.order == TurnOrder.MANUAL:
        return ""
    found = [story.member(name) for name in channel.queue if _may_be_next(story, name)]
    if channel.order == TurnOrder.PRIORITY:
        found.sort(key=lambda one: (one.turns, -one.priority))
    speaking = [one for one in found if can_speak(story.world, one)]
    return next((one.name for one in speaking or found), "")


def _may_be_next(story: Story, name: str) -> bool:
    """It has turns left, and no step of an earlier turn still runs."""
    rounds, member = story.channel.rounds, story.member(name)
    return not member.is_late and (rounds is None or member.turns < rounds)


def _has_passed(story: Story, deadline: float | None) -> bool:
    return deadline is not None and deadline <= story.at
