"""How channels are opened and closed, and how members are added."""

from collections.abc import Iterable

from crew.domain.channels.channel_draft import ChannelDraft
from crew.domain.channels.turns import enqueue, settle, take_held
from crew.domain.kernel.errors import Conflict, UsageError
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import agent_name, channel_name
from crew.domain.rows.channel import (
    CREW,
    NUMBERED,
    Author,
    Channel,
    ChannelState,
    Member,
    Mode,
    TurnState,
    Way,
    member_id,
)
from crew.domain.world import World, born, moved

DRIVEN_ROUNDS = 5
"""How many rounds paid agents talk among themselves before they wait for a person."""


@frozen
class NewMember:
    """A member to add; without an `agent_kind` for crew to drive, it connects by itself."""

    name: str
    agent_kind: str = ""
    priority: int = 5
    timeout_s: float | None = None


def opened(
    world: World,
    channel: Channel,
    members: Iterable[NewMember],
    *,
    at: float,
    asked_by: str = CREW,
) -> list[Fact]:
    """Open a channel with its members; its topic is the first post."""
    members = tuple(members)
    _check_new(channel, members)
    draft = ChannelDraft(world, channel.id, at=at)
    draft.add(born(channel, "opened", at=at))
    for one in members:
        join_in(draft, one)
    if channel.topic:
        draft.post(asked_by, channel.topic, author=Author.PERSON, to=_everybody(channel, members))
    settle(draft)
    return draft.facts


def free_id(world: World, name: str) -> str:
    """The id of a new channel; a name is free again once its channel is closed."""
    earlier = [one for one in world.channels.values() if one.name == channel_name(name)]
    if any(one.is_open for one in earlier):
        raise Conflict(
            f"there is an open channel {name} already",
            hint=f"choose another name, or end that one: `crew channel close {name}`",
            code="channel_exists",
        )
    return f"{name}{NUMBERED}{len(earlier) + 1}" if earlier else channel_name(name)


def default_rounds(members: Iterable[NewMember]) -> int | None:
    """The round limit of a channel in which paid agents could talk only to each other."""
    kinds = [one.agent_kind for one in members]
    return DRIVEN_ROUNDS if all(kinds) or len([one for one in kinds if one]) > 1 else None


def _everybody(channel: Channel, members: tuple[NewMember, ...]) -> tuple[str, ...]:
    return tuple(one.name for one in members) if channel.mode == Mode.DIRECT else ()


def _check_new(channel: Channel, members: tuple[NewMember, ...]) -> None:
    names = [agent_name(one.name) for one in members]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(
            f"{', '.join(sorted(twice))} is named twice",
            hint="name each one once",
            code="named_twice",
        )
    if channel.mode == Mode.SINGLE and len(names) != 1:
        raise UsageError(
            f"a single channel has one agent, not {len(names)}",
            hint="name one",
            code="agent_count",
        )
    _check_times(channel, members)
    if channel.council and not all(one.agent_kind for one in members):
        raise UsageError(
            "a council needs agents that crew drives",
            hint="`crew agents` lists them",
            code="no_agents",
        )


def _check_times(channel: Channel, members: tuple[NewMember, ...]) -> None:
    """Refuse times of 0, because such a turn would end before it begins."""
    own = {f"the timeout of {one.name}": one.timeout_s for one in members}
    times: dict[str, float | None] = {
        "timeout": channel.timeout_s,
        "wait_timeout": channel.wait_timeout_s,
        "heartbeat": channel.heartbeat_s,
        **own,
    }
    for name, seconds in times.items():
        if seconds is not None and seconds <= 0:
            raise UsageError(
                f"{name} is {seconds:g} seconds",
                hint="give a longer time, such as 60s",
                code="invalid_value",
            )


def join_in(draft: ChannelDraft, new: NewMember) -> None:
    if new.name == CREW:
        raise UsageError(f"the name {CREW} belongs to crew itself", hint="choose another name")
    member = Member(
        id=member_id(draft.name, new.name),
        channel=draft.name,
        name=new.name,
        way=Way.DRIVEN if new.agent_kind else Way.CONNECTED,
        agent_kind=new.agent_kind,
        priority=new.priority,
        timeout_s=new.timeout_s,
    )
    draft.add_member(member, "member_added")
    if member.is_driven:
        queue(draft, member)


def queue(draft: ChannelDraft, member: Member) -> None:
    if member.state == TurnState.OFFLINE:
        draft.move(member.name, "agent_starts", to=TurnState.IDLE, errors=0, last_error="")
    enqueue(draft, member.name, assigned=True)


def take_out(draft: ChannelDraft, member: Member) -> None:
    draft.move(
        member.name,
        "removed_from_channel",
        to=TurnState.IDLE,
        assigned=False,
        turn_ends_at=None,
        wait_ends_at=None,
        waits_for="",
        was_late=False,
    )


def close(draft: ChannelDraft) -> None:
    """Close the channel: no member speaks any more, and all posts are kept, held ones too."""
    for member in draft.members():
        if member.takes_part:
            take_out(draft, member)
    for post in take_held(draft):
        draft.post(post.sender, post.text, author=Author.PERSON, to=post.to)
    closed = moved(draft.channel, "closed", to=ChannelState.CLOSED, at=draft.at, closed_at=draft.at)
    draft.add(closed)
