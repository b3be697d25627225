"""What a member asks of its channel over MCP: join, read, post, end its turn, wait."""

import math
from collections.abc import Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

from crew.domain.channels.channel_draft import ChannelDraft
from crew.domain.channels.channel_hints import for_the_member
from crew.domain.channels.channel_requests import find_member
from crew.domain.channels.posts import addressed, unseen, without_signal, words_of_people
from crew.domain.channels.turns import (
    INTERRUPTED,
    end_turn,
    enqueue,
    heartbeat_deadline,
    resume,
    settle,
)
from crew.domain.kernel.errors import Conflict, NotFound, UsageError
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.requests import Answer, Asked, Verb, typed
from crew.domain.rows.channel import Interrupting, Member, Post, TurnState
from crew.domain.world import World, noted

if TYPE_CHECKING:
    from crew.domain.field_groups import MemberChanges

LONGEST_READ = 50_000
"""Characters that one read returns, because clients cut off much longer answers."""

_BEATS_PER_LIMIT = 4
"""A heartbeat is recorded when a quarter of the time that may pass without one has passed."""


@frozen
class MemberCall:
    """`member` is the member's id, which its token proves."""

    member: str


@frozen
class ReadPosts(MemberCall):
    since: object = None


@frozen
class AddPost(MemberCall):
    text: str


@frozen
class WaitInTurn(MemberCall):
    """`over` ends the wait."""

    over: bool = False
    for_: str = ""
    seconds: object = None


def join(asked: Asked[MemberCall]) -> Answer:
    """Bring the member online: queued if it is assigned, else idle until it is."""
    draft, member = _speaker(asked)
    if member.state == TurnState.OFFLINE:
        draft.move(
            member.name, "agent_starts", to=TurnState.IDLE, heartbeat_at=asked.at, last_error=""
        )
        if member.assigned:
            enqueue(draft, member.name)
    else:
        draft.add(*beat(draft.world, member.id, at=asked.at))
    return _done(draft, member.name, topic=draft.channel.topic)


def read(asked: Asked[ReadPosts]) -> Answer:
    """Give the posts that the member has not got yet; this call acknowledges the earlier ones."""
    draft, member = _present(asked)
    since = _number("since", asked.request.since)
    if since is not None:
        draft.note(member.name, "reads_again", given=int(min(since, member.given)), heard=())
    found, left = _given(draft, member.name)
    if member.state == TurnState.WAITING and member.waits_for == INTERRUPTED and not left:
        resume(draft, member.name)
    return _done(draft, member.name, messages=found, more=left)


def has_something(world: World, member_id: str) -> bool:
    """Whether a read would return something: a post, a turn, or that the member is offline."""
    member = world.members[member_id]
    if member.state in {TurnState.ACTIVE, TurnState.OFFLINE}:
        return True
    is_over = not world.channels[member.channel].is_open
    return is_over or (member.takes_part and any(unseen(world, member)))


def post(asked: Asked[AddPost]) -> Answer:
    """Post a text of the active member; a late text is shown once and changes no turn."""
    draft, member = _present(asked)
    text, ends = without_signal(asked.request.text)
    if member.state != TurnState.ACTIVE:
        return _posted_late(draft, member, text)
    if text.strip():
        draft.post(member.name, text, to=addressed(text, draft.channel.members))
        draft.note(member.name, "spoke", said_at=asked.at)
    elif not ends:
        raise UsageError(
            "the message is empty", hint="send it again with a text", code="empty_message"
        )
    heard = _injected(draft, member.name)
    if ends:
        end_turn(draft, member.name, "turn_complete")
    return _done(draft, member.name, messages=heard)


def _posted_late(draft: ChannelDraft, member: Member, text: str) -> Answer:
    if not member.was_late:
        raise _not_active(draft, member)
    if text.strip():
        draft.post(member.name, text, late=True)
    draft.note(member.name, "late", was_late=False)
    return _done(draft, member.name, note="your turn had timed out; it is shown as late")


def turn_complete(asked: Asked[MemberCall]) -> Answer:
    draft, member = _present(asked)
    if member.was_late and member.state == TurnState.QUEUED:
        return _done(draft, member.name, note="your turn had timed out; nothing was changed")
    if member.state == TurnState.WAITING and member.waits_for != INTERRUPTED:
        resume(draft, member.name)
    elif member.state != TurnState.ACTIVE:
        raise _not_active(draft, member)
    end_turn(draft, member.name, "turn_complete")
    return _done(draft, member.name)


def wait(asked: Asked[WaitInTurn]) -> Answer:
    """Pause the turn for something outside, or end that pause."""
    draft, member = _present(asked)
    if asked.request.over:
        if member.state != TurnState.WAITING or member.waits_for == INTERRUPTED:
            raise Conflict(
                f"you do not wait, you are {member.state}",
                hint=for_the_member(draft, member),
                code="not_waiting",
            )
        resume(draft, member.name)
        return _done(draft, member.name)
    if member.state != TurnState.ACTIVE:
        raise _not_active(draft, member)
    limit_s = min(
        _number("seconds", asked.request.seconds) or math.inf, draft.channel.wait_timeout_s
    )
    draft.move(
        member.name,
        "wait_requested",
        to=TurnState.WAITING,
        waits_for=asked.request.for_ or "something outside",
        turn_ends_at=None,
        wait_ends_at=asked.at + limit_s,
    )
    return _done(draft, member.name)


def _number(name: str, value: object) -> float | None:
    """A finite number, 0 or more, from the arguments of an agent."""
    if value is None or (isinstance(value, int | float) and 0 <= value < math.inf):
        return value
    raise UsageError(
        f"{name} cannot be {value!r}", hint="give a number of 0 or more", code="invalid_value"
    )


def heartbeat(asked: Asked[MemberCall]) -> Answer:
    draft, member = _present(asked)
    return _done(draft, member.name, messages=_injected(draft, member.name))


def beat(world: World, member_id: str, *, at: float) -> list[Fact]:
    """Record a heartbeat if one is due."""
    member = world.members.get(member_id)
    if member is None or member.is_driven or member.state == TurnState.OFFLINE:
        return []
    draft = ChannelDraft(world, member.channel, at=at)
    if _is_due(draft, member):
        draft.note(member.name, "heartbeat", heartbeat_at=at)
    return draft.facts


def awake(world: World, *, at: float) -> list[Fact]:
    """Restart all heartbeats when a runner starts, because no member could reach crew before.

    The steps of the runner before died with it; each session is resumed in a new step.
    """
    facts: list[Fact] = []
    for member in world.members.values():
        if member.speaking:
            facts += _cut_off(world, member, at=at)
        elif heartbeat_deadline(world.channels[member.channel], member) is not None:
            facts.append(noted(member, "runner_started", at=at, heartbeat_at=at))
    return facts


def _cut_off(world: World, member: Member, *, at: float) -> list[Fact]:
    """Record that a step ended without a report; a member that was interrupted continues."""
    draft = ChannelDraft(world, member.channel, at=at)
    draft.note(member.name, "cut_off", speaking=False, session_used=True, turn_ends_at=None)
    if member.waits_for == INTERRUPTED:
        resume(draft, member.name)
    return draft.facts


def _speaker(asked: Asked[MemberCall]) -> tuple[ChannelDraft, Member]:
    channel, _, name = asked.request.member.partition("/")
    if channel not in asked.world.channels:
        raise NotFound(f"there is no channel {channel!r}", hint="stop here; you were removed")
    if not asked.world.channels[channel].is_open:
        raise Conflict(
            f"channel {channel} is closed",
            hint="leave; the channel is closed",
            code="channel_closed",
        )
    draft = ChannelDraft(asked.world, channel, at=asked.at)
    member = find_member(draft, name)
    if member.disabled:
        raise Conflict(
            f"a person disabled you in {draft.name}",
            hint=for_the_member(draft, member),
            code="member_disabled",
        )
    return draft, member


def _present(asked: Asked[MemberCall]) -> tuple[ChannelDraft, Member]:
    """The calling member; its call counts as a heartbeat and acknowledges earlier posts."""
    draft, member = _speaker(asked)
    if member.state == TurnState.OFFLINE:
        raise Conflict(
            f"you are offline in {draft.name}",
            hint=for_the_member(draft, member),
            code="member_offline",
        )
    changes: MemberChanges = {}
    if not member.is_driven and _is_due(draft, member):
        changes["heartbeat_at"] = asked.at
    if not member.is_driven and member.acknowledged < member.given:
        changes["acknowledged"] = member.given
    if changes:
        draft.note(member.name, "heartbeat", **changes)
    return draft, draft.member(member.name)


def _is_due(draft: ChannelDraft, member: Member) -> bool:
    return draft.at - member.heartbeat_at >= draft.channel.heartbeat_s / _BEATS_PER_LIMIT


def _given(draft: ChannelDraft, name: str) -> tuple[list[dict[str, object]], int]:
    """The new posts, as many as one answer may hold, and how many are left.

    An idle member takes no part and gets none.
    """
    member = draft.member(name)
    if not member.takes_part:
        return [], 0
    found = list(unseen(draft.world, member))
    sizes = accumulate(len(post.text) for post in found)
    count = max(1, sum(size <= LONGEST_READ for size in sizes))
    left = found[count:]
    last = found[count - 1].sequence if left else draft.channel.sequence
    if member.given < last:
        heard = tuple(number for number in member.heard if number > last)
        draft.note(name, "given", given=last, heard=heard)
    return [told(post) for post in found[:count]], len(left)


def _injected(draft: ChannelDraft, name: str) -> list[dict[str, object]]:
    """In mode inject, the active member gets the posts of people with its next call."""
    member = draft.member(name)
    if draft.channel.interrupting != Interrupting.INJECT or member.state != TurnState.ACTIVE:
        return []
    found = words_of_people(draft.world, member)
    if found:
        draft.note(name, "heard", heard=(*member.heard, *(post.sequence for post in found)))
    return [told(post) for post in found]


def told(post: Post) -> dict[str, object]:
    """A post as a member gets it."""
    marks = {"late": True} if post.late else {}
    to = {"to": list(post.to)} if post.to else {}
    return {
        "sequence": post.sequence,
        "from": post.sender,
        "by": post.author,
        "text": post.text,
        **to,
        **marks,
    }


def _not_active(draft: ChannelDraft, member: Member) -> Conflict:
    hint = for_the_member(draft, member)
    if member.state == TurnState.WAITING and member.waits_for == INTERRUPTED:
        return Conflict(
            "a person interrupted you: read the new messages, then continue",
            hint=hint,
            code="turn_interrupted",
        )
    holder = draft.channel.holder
    whose = f"{holder} has it" if holder and holder != member.name else "no member has it"
    return Conflict(
        f"it is not your turn (you are {member.state}, {whose}), and nothing was posted",
        hint=hint,
        code="not_your_turn",
    )


def _done(draft: ChannelDraft, name: str, **told_too: object) -> Answer:
    settle(draft)
    reply: dict[str, object] = {
        "channel": draft.name,
        "you": name,
        "state": draft.member(name).state,
        "turn": draft.channel.holder or None,
    }
    reply |= {key: value for key, value in told_too.items() if _is_worth_telling(key, value)}
    return Answer(facts=tuple(draft.facts), reply=reply)


def _is_worth_telling(key: str, value: object) -> bool:
    return bool(value) or key == "messages"


VERBS: Mapping[str, Verb] = {
    "channel_join": typed(MemberCall, join),
    "channel_read": typed(ReadPosts, read),
    "channel_post": typed(AddPost, post),
    "channel_turn_complete": typed(MemberCall, turn_complete),
    "channel_wait": typed(WaitInTurn, wait),
    "channel_heartbeat": typed(MemberCall, heartbeat),
}
