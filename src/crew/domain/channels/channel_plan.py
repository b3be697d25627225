"""The channels' part of the plan: what follows at once, what is due, and when to look again."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import zip_longest

from crew.domain.channels.channel_draft import ChannelDraft
from crew.domain.channels.posts import has_news
from crew.domain.channels.turns import deadlines, lapse, settle
from crew.domain.commands import Command, SpeakTurn, Vacate
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.channel import Channel, Member, TurnState, member_id
from crew.domain.rules import Rules
from crew.domain.world import World


@frozen
class _Outlook:
    """What follows from the rows of one channel: at once, and at `next_at` by time alone.

    Posts come with a change of their channel, so that these rows tell everything.
    """

    members: tuple[Member, ...]
    settles: bool
    next_at: float
    to_speak: tuple[Member, ...]
    to_leave: tuple[Member, ...]


@frozen
class _Outlooks:
    """The outlooks of all channels, and the tables that they were made from."""

    channels: Mapping[str, Channel] = field(default_factory=dict)
    members: Mapping[str, Member] = field(default_factory=dict)
    by_name: Mapping[str, _Outlook] = field(default_factory=dict)


_latest = [_Outlooks()]
"""Of many channels few change at a time, and values never do: what is known of the others is true.

It is replaced as a whole, so that somebody who asks about another world, in another thread too,
makes this one slower and nothing wrong.
"""


def decide_channels(world: World, now: float, *, is_running: bool) -> list[Fact]:
    """Time counts only while a runner is up: nobody could speak in vain before."""
    facts: list[Fact] = []
    for name, outlook in _outlooks(world).items():
        lapses = is_running and outlook.next_at <= now
        if outlook.settles or lapses:
            draft = ChannelDraft(world, name, at=now)
            if lapses:
                lapse(draft)
            settle(draft)
            facts += draft.facts
    return facts


def plan_channels(
    world: World,
    now: float,
    *,
    rules: Rules,
    taking_work: bool,
    busy: frozenset[str] = frozenset(),
) -> Iterator[Command]:
    """Who is assigned again while its worktree is being removed speaks when that is done."""
    leaving = {key for key in busy if key.startswith("vacate ")}
    for name, outlook in _outlooks(world).items():
        for member in outlook.to_leave:
            yield Vacate(subject=member.id)
        if taking_work and rules.means_channel(name):
            for member in outlook.to_speak:
                is_leaving = leaving and Vacate(subject=member.id).key in leaving
                if not is_leaving and _opens_at(world, member, rules) <= now:
                    yield SpeakTurn(subject=member.id)


def channel_waits(world: World, now: float, *, rules: Rules) -> dict[str, float]:
    """One moment a channel: the next at which time alone changes something in it."""
    found: dict[str, float] = {}
    for name, outlook in _outlooks(world).items():
        next_at = outlook.next_at if outlook.next_at > now else math.inf
        for member in outlook.to_speak if world.providers else ():
            if now < (opens_at := _opens_at(world, member, rules)) < next_at:
                next_at = opens_at
        if next_at < math.inf and rules.means_channel(name):
            found[f"turn {name}"] = next_at
    return found


def is_resting(world: World, name: str) -> bool:
    """Nothing more is said in it by those whom crew drives, until somebody else speaks."""
    outlook = _outlooks(world)[name]
    return not outlook.to_speak and not any(
        one.takes_part and one.speaking for one in outlook.members
    )


def _outlooks(world: World) -> Mapping[str, _Outlook]:
    known = _latest[0]
    if world.channels is not known.channels or world.members is not known.members:
        touched = _touched(world, known)
        by_name = {
            name: _looked(world, channel) if name in touched else known.by_name[name]
            for name, channel in world.channels.items()
        }
        known = _Outlooks(channels=world.channels, members=world.members, by_name=by_name)
        _latest[0] = known
    return known.by_name


def _touched(world: World, known: _Outlooks) -> set[str]:
    """The channels of which a row is another one by now, or stands at another place."""
    channels = zip_longest(world.channels.values(), known.channels.values())
    members = zip_longest(world.members.values(), known.members.values())
    return {
        *(new.id for new, old in channels if new is not old and new is not None),
        *(new.channel for new, old in members if new is not old and new is not None),
    }


def _looked(world: World, channel: Channel) -> _Outlook:
    members = tuple(world.members[member_id(channel.id, name)] for name in channel.members)
    draft = ChannelDraft(world, channel.id, at=0.0)
    settle(draft)
    times = [at for one in members for at in deadlines(channel, one)] if channel.is_open else []
    return _Outlook(
        members=members,
        settles=bool(draft.facts),
        next_at=min(times, default=math.inf),
        to_speak=tuple(one for one in members if _is_to_speak(world, channel, one)),
        to_leave=tuple(one for one in members if _is_to_leave(channel, one)),
    )


def _opens_at(world: World, member: Member, rules: Rules) -> float:
    """When its provider lets it speak; long ago, unless that is paused."""
    provider = world.providers.get(rules.provider(member.agent_kind))
    return provider.next_at if provider is not None else 0.0


def _is_to_leave(channel: Channel, member: Member) -> bool:
    return member.housed and not (channel.is_open and member.takes_part)


def _is_to_speak(world: World, channel: Channel, member: Member) -> bool:
    """One that was cut off, by a crash of the runner, goes on although nothing new was said."""
    has_turn = channel.is_open and member.is_driven and member.state == TurnState.ACTIVE
    return has_turn and (member.owes_answer or has_news(world, member))
