"""A draft of facts about one channel, each made from the channel after the facts before it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from crew.domain.rows.channel import (
    CREW,
    Author,
    Channel,
    Member,
    Mode,
    Post,
    TurnState,
    member_id,
    post_id,
)
from crew.domain.world import FactDraft, World, born, moved, noted

if TYPE_CHECKING:
    from crew.domain.field_groups import MemberChanges
    from crew.domain.row_changes import ChannelFields


class ChannelDraft(FactDraft):
    """The facts about one channel at one time."""

    def __init__(self, world: World, name: str, *, at: float) -> None:
        super().__init__(world)
        self.name = name
        self.at = at

    @property
    def channel(self) -> Channel:
        return self.world.channels[self.name]

    def member(self, name: str) -> Member:
        return self.world.members[member_id(self.name, name)]

    def members(self) -> list[Member]:
        return [self.member(name) for name in self.channel.members]

    def move(
        self,
        name: str,
        trigger: str,
        *,
        to: TurnState,
        extra: Mapping[str, object] | None = None,
        **changes: "Unpack[MemberChanges]",
    ) -> None:
        """Move a member, and update the queue and the holder of the channel."""
        fact = moved(self.member(name), trigger, to=to, at=self.at, **changes)
        place = _place(self.channel, name, to)
        self.add(
            replace(fact, extra=extra) if extra else fact,
            *([noted(self.channel, trigger, at=self.at, **place)] if place else ()),
        )

    def note(self, name: str, trigger: str, **changes: "Unpack[MemberChanges]") -> None:
        self.add(noted(self.member(name), trigger, at=self.at, **changes))

    def change(self, trigger: str, **changes: "Unpack[ChannelFields]") -> None:
        """Change fields of the channel itself."""
        self.add(noted(self.channel, trigger, at=self.at, **changes))

    def add_member(self, member: Member, trigger: str) -> None:
        self.add(born(member, trigger, at=self.at))
        self.change(trigger, members=(*self.channel.members, member.name))

    def post(
        self,
        sender: str,
        text: str,
        *,
        author: Author = Author.AGENT,
        to: Iterable[str] = (),
        late: bool = False,
    ) -> Post:
        """Add a post that all members can read from now on."""
        number = self.channel.sequence + 1
        post = Post(
            id=post_id(self.name, number),
            channel=self.name,
            sequence=number,
            sender=sender,
            text=text,
            at=self.at,
            author=author,
            to=tuple(to),
            late=late,
        )
        self.add(
            born(post, "posted", at=self.at),
            noted(self.channel, "said", at=self.at, sequence=number),
        )
        return post

    def announce(self, text: str) -> None:
        self.post(CREW, text, author=Author.SYSTEM)


def _place(channel: Channel, name: str, state: TurnState) -> "ChannelFields":
    """The changes of queue and holder that follow from a member's move."""
    others = tuple(one for one in channel.queue if one != name)
    queue = (*others, name) if state == TurnState.QUEUED else others
    holds = state in {TurnState.ACTIVE, TurnState.WAITING} and channel.mode not in ALL_AT_ONCE
    holder = name if holds else channel.holder if channel.holder != name else ""
    changed = (queue, holder) != (channel.queue, channel.holder)
    return {"queue": queue, "holder": holder} if changed else {}


ALL_AT_ONCE = frozenset({Mode.BROADCAST, Mode.DIRECT})
"""Modes in which all members may have a turn at the same time."""
