"""The channels' part of the plan: what follows at once, what is due, and when to look again."""

from collections.abc import Iterator

from crew.domain.channel import Channel, Member, TurnState, member_id
from crew.domain.channel_posts import has_news
from crew.domain.channel_story import Story
from crew.domain.channel_turns import INTERRUPTED, deadlines, lapse, settle
from crew.domain.commands import Command, SpeakTurn, Vacate
from crew.domain.fact import Fact
from crew.domain.rules import Rules
from crew.domain.world import World


def decide_channels(world: World, now: float, *, is_running: bool) -> list[Fact]:
    """Time counts only while a runner is up: nobody could speak in vain before."""
    facts: list[Fact] = []
    for channel in world.channels.values():
        if not channel.is_open:
            continue
        story = Story(world=world, name=channel.id, at=now)
        if is_running:
            lapse(story)
        settle(story)
        facts += story.facts
    return facts


def plan_channels(
    world: World, now: float, *, rules: Rules, taking_work: bool
) -> Iterator[Command]:
    for channel in world.channels.values():
        for name in channel.members:
            member = world.members[member_id(channel.id, name)]
            if _is_to_leave(channel, member):
                yield Vacate(subject=member.id)
            elif taking_work and _is_to_speak(world, channel, member, now, rules):
                yield SpeakTurn(subject=member.id)


def channel_waits(world: World, now: float, *, rules: Rules) -> dict[str, float]:
    """One moment a channel: the next at which time alone changes something in it."""
    found: dict[str, float] = {}
    for channel in world.channels.values():
        if not channel.is_open or not rules.means_channel(channel.id):
            continue
        times = [
            at
            for name in channel.members
            for at in _times(world, channel, world.members[member_id(channel.id, name)], rules)
            if at > now
        ]
        if times:
            found[f"turn {channel.id}"] = min(times)
    return found


def is_resting(world: World, name: str, now: float, *, rules: Rules) -> bool:
    """Nothing more is said in it by those whom crew drives, until somebody else speaks."""
    channel = world.channels[name]
    members = (world.members[member_id(name, one)] for one in channel.members)
    return not any(
        one.takes_part and (one.speaking or _is_to_speak(world, channel, one, now, rules))
        for one in members
    )


def _times(world: World, channel: Channel, member: Member, rules: Rules) -> list[float]:
    provider = world.providers.get(rules.provider(member.agent_kind))
    opens = [provider.next_at] if provider and member.state == TurnState.ACTIVE else []
    return [*deadlines(channel, member), *opens]


def _is_to_leave(channel: Channel, member: Member) -> bool:
    return member.housed and not (channel.is_open and member.takes_part)


def _is_to_speak(world: World, channel: Channel, member: Member, now: float, rules: Rules) -> bool:
    """One that was cut off, by a crash of the runner, goes on although nothing new was said."""
    if not (channel.is_open and member.is_driven and rules.means_channel(channel.id)):
        return False
    cut_off = member.state == TurnState.WAITING and member.waits_for == INTERRUPTED
    if member.state != TurnState.ACTIVE and not (cut_off and member.speaking):
        return False
    provider = world.providers.get(rules.provider(member.agent_kind))
    if provider is not None and provider.is_shut(now):
        return False
    return member.owes_answer or has_news(world, member)
