"""The plan for channels: which member speaks, which worktree goes, and when to look again."""

import math
from collections.abc import Iterator, Mapping
from itertools import zip_longest

from crew.domain.channels.channel_draft import ChannelDraft
from crew.domain.channels.posts import has_news
from crew.domain.channels.turns import deadlines, lapse, settle
from crew.domain.clock import Clock
from crew.domain.commands import Command, CommandKey, CommandKind, SpeakTurn, Vacate
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.provider_limits import opens_at
from crew.domain.rows.channel import Channel, Member, TurnState, member_id
from crew.domain.rules import Rules
from crew.domain.scope import Scope
from crew.domain.world import World


@frozen
class Outlook:
    """What follows from the rows of one channel: at once, and by time alone at `next_at`.

    A new post also changes its channel, so these rows are enough to notice every change.
    """

    members: tuple[Member, ...]
    settles: bool
    next_at: float
    to_speak: tuple[Member, ...]
    to_leave: tuple[Member, ...]


class Outlooks:
    """A cache of the outlooks of all channels, for the world that was planned last.

    Few of many channels change at a time, and rows are immutable: an outlook holds as long as the
    rows are the same objects. The answers are the same as without the cache.
    """

    def __init__(self) -> None:
        self._channels: Mapping[str, Channel] = {}
        self._members: Mapping[str, Member] = {}
        self._by_name: Mapping[str, Outlook] = {}

    def of(self, world: World) -> Mapping[str, Outlook]:
        if world.channels is not self._channels or world.members is not self._members:
            touched, known = self._touched(world), self._by_name
            self._by_name = {
                name: _looked(world, channel) if name in touched else known[name]
                for name, channel in world.channels.items()
            }
            self._channels, self._members = world.channels, world.members
        return self._by_name

    def _touched(self, world: World) -> set[str]:
        """The channels of which a row, or its place, differs from the last world."""
        channels = zip_longest(world.channels.values(), self._channels.values())
        members = zip_longest(world.members.values(), self._members.values())
        return {
            *(new.id for new, old in channels if new is not old and new is not None),
            *(new.channel for new, old in members if new is not old and new is not None),
        }


def decide_channels(
    world: World, clock: Clock, *, scope: Scope, outlooks: Outlooks | None = None
) -> list[Fact]:
    """The facts that follow for channels; time counts only while a runner takes work."""
    facts: list[Fact] = []
    for name, outlook in (outlooks or Outlooks()).of(world).items():
        then = CommandKind.TURN if scope.has_channel(name) else None
        lapses = scope.takes_work and clock.has_come(outlook.next_at, then)
        if outlook.settles or lapses:
            draft = ChannelDraft(world, name, at=clock.now)
            if lapses:
                lapse(draft)
            settle(draft)
            facts += draft.facts
    return facts


def plan_channels(
    world: World,
    clock: Clock,
    *,
    rules: Rules,
    scope: Scope,
    busy: frozenset[CommandKey] = frozenset(),
    outlooks: Outlooks | None = None,
) -> Iterator[Command]:
    """Which members speak and which worktrees go.

    A member whose worktree is being removed speaks after that.
    """
    leaving = {key.subject for key in busy if key.kind == CommandKind.VACATE}
    for name, outlook in (outlooks or Outlooks()).of(world).items():
        for member in outlook.to_leave:
            yield Vacate(subject=member.id)
        if scope.takes_work and scope.has_channel(name):
            for member in outlook.to_speak:
                is_open_at = opens_at(world, member.agent_kind, rules)
                if member.id not in leaving and clock.has_come(is_open_at, CommandKind.TURN):
                    yield SpeakTurn(subject=member.id)


def is_resting(world: World, name: str) -> bool:
    """Whether no driven member has anything to say until another participant posts."""
    outlook = _looked(world, world.channels[name])
    return not outlook.to_speak and not any(
        one.takes_part and one.speaking for one in outlook.members
    )


def _looked(world: World, channel: Channel) -> Outlook:
    members = tuple(world.members[member_id(channel.id, name)] for name in channel.members)
    draft = ChannelDraft(world, channel.id, at=0.0)
    settle(draft)
    times = [at for one in members for at in deadlines(channel, one)] if channel.is_open else []
    return Outlook(
        members=members,
        settles=bool(draft.facts),
        next_at=min(times, default=math.inf),
        to_speak=tuple(one for one in members if _is_to_speak(world, channel, one)),
        to_leave=tuple(one for one in members if _is_to_leave(channel, one)),
    )


def _is_to_leave(channel: Channel, member: Member) -> bool:
    return member.housed and not (channel.is_open and member.takes_part)


def _is_to_speak(world: World, channel: Channel, member: Member) -> bool:
    """Whether to call this member's CLI; a member that a crash cut off continues without news."""
    has_turn = channel.is_open and member.is_driven and member.state == TurnState.ACTIVE
    return has_turn and (member.owes_answer or has_news(world, member))
