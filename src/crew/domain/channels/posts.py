"""Posts: whom each is for, which members have seen it, and how it ends a turn."""

import re
from collections.abc import Iterator

from crew.domain.kernel.errors import UsageError
from crew.domain.rows.channel import (
    Author,
    Channel,
    Interrupting,
    Member,
    Mode,
    Post,
    TurnState,
    member_id,
    post_id,
)
from crew.domain.rows.message import LONGEST_MESSAGE
from crew.domain.world import World

TURN_COMPLETE = "TURN_COMPLETE"

_ENDS_TURN = re.compile(rf"{TURN_COMPLETE}\s*\Z")
_ADDRESSED = re.compile(r"\s*@([A-Za-z][A-Za-z0-9_-]*)[,:]?\s*")


def without_signal(text: str) -> tuple[str, bool]:
    """The text as it is shown, and whether it ends the turn: the signal counts at the end only."""
    found = _ENDS_TURN.search(text)
    return (text[: found.start()].rstrip(), True) if found else (text.rstrip(), False)


def sayable(text: str) -> str:
    """The text of a person; one that is too long is refused and never cut."""
    if len(text) > LONGEST_MESSAGE:
        raise UsageError(
            f"the text has {len(text):,} characters; the limit is {LONGEST_MESSAGE:,}",
            hint="shorten it, and name a file for the rest",
            code="too_long",
        )
    return text


def shortened(text: str) -> str:
    """The text of an agent, cut if it is too long, since a CLI's output cannot be refused."""
    if len(text) <= LONGEST_MESSAGE:
        return text
    return f"{text[:LONGEST_MESSAGE]}\n[cut: it had {len(text):,} characters]"


def addressed(text: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The members that a text names at its beginning: `@pm @dev: …`."""
    found: list[str] = []
    place = 0
    while (match := _ADDRESSED.match(text, place)) and match[1] in names:
        found.append(match[1])
        place = match.end()
    return tuple(dict.fromkeys(found))


def posts_after(world: World, channel: Channel, sequence: int) -> Iterator[Post]:
    for number in range(sequence + 1, channel.sequence + 1):
        yield world.posts[post_id(channel.id, number)]


def unseen(world: World, member: Member) -> Iterator[Post]:
    """The posts that this member was never given and did not write, the oldest first."""
    channel = world.channels[member.channel]
    for post in posts_after(world, channel, member.given):
        is_meant = channel.mode != Mode.DIRECT or concerns(post, member)
        if is_meant and post.sequence not in member.heard and not _is_by(post, member):
            yield post


def has_news(world: World, member: Member) -> bool:
    """Whether there is an unseen post to answer; crew's own announcements do not count."""
    return any(post.author != Author.SYSTEM for post in unseen(world, member))


def can_speak(world: World, member: Member) -> bool:
    """Whether the member has a reason to speak.

    A driven member needs a post to answer, and so does every member of a direct channel.
    """
    if world.channels[member.channel].mode == Mode.DIRECT:
        return has_news(world, member)
    return not member.is_driven or member.owes_answer or has_news(world, member)


def words_of_people(world: World, member: Member) -> list[Post]:
    return [post for post in unseen(world, member) if post.author == Author.PERSON]


def injected_into(world: World, post: Post) -> list[str]:
    """The members that get a person's post at once, during their turn."""
    channel = world.channels[post.channel]
    if post.author != Author.PERSON or channel.interrupting != Interrupting.INJECT:
        return []
    found = (world.members[member_id(channel.id, name)] for name in channel.members)
    return [
        one.id
        for one in found
        if one.state == TurnState.ACTIVE and one.speaking and post.sequence > one.given
    ]


def concerns(post: Post, member: Member) -> bool:
    """Whether a post in a direct channel is for this member."""
    return member.name in post.to or (not post.to and post.author == Author.SYSTEM)


def _is_by(post: Post, member: Member) -> bool:
    return post.author == Author.AGENT and post.sender == member.name
