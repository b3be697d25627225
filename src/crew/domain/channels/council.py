"""A council: how its decision is read from the last posts of its members."""

from collections.abc import Iterable, Mapping

from crew.domain.channels.channel_draft import ChannelDraft
from crew.domain.channels.posts import can_speak, posts_after
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.quotation import attributed, headline
from crew.domain.rows.channel import Author, Channel, Member, Post, TurnState

AGREE = "AGREE"
OBJECT = "OBJECT"


@frozen
class CouncilVerdict:
    """The decision; `text` is recorded, `agreed` means that no member objected."""

    agreed: bool
    text: str


def vote(text: str) -> str:
    """AGREE or OBJECT if the last line with text is exactly that word; else nothing."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines and lines[-1] in {AGREE, OBJECT} else ""


def council_verdict(
    channel: Channel, posts: Iterable[Post], *, members: Iterable[str], spent: str = ""
) -> CouncilVerdict | None:
    """The decision of a council, or None while it continues.

    The council has decided when all members agree in their last posts, or when it has used up its
    rounds; then the last posts count.
    """
    last = _last_words(posts)
    names = list(members)
    votes = {name: vote(last[name].text) if name in last else "" for name in names}
    agreed = bool(names) and all(one == AGREE for one in votes.values())
    if not agreed and not spent:
        return None
    head = "agreed" if agreed else f"not agreed {spent}"
    return CouncilVerdict(agreed=agreed, text=_text(channel, votes, last, head=head))


def decide_council(draft: ChannelDraft) -> bool:
    """Record the decision once there is one; true if a decision is recorded."""
    channel = draft.channel
    if not channel.council or channel.decision:
        return channel.council
    members = [one for one in draft.members() if one.takes_part]
    if any(one.state != TurnState.QUEUED and (one.speaking or one.turn_ends_at) for one in members):
        return False
    names = [one.name for one in members]
    posts = list(posts_after(draft.world, channel, 0))
    verdict = council_verdict(
        channel, _after_the_last_question(posts), members=names, spent=_spent(draft, members, posts)
    )
    if verdict is None:
        return False
    draft.change("decided", decision=verdict.text, agreed=verdict.agreed)
    return True


def _spent(draft: ChannelDraft, members: list[Member], posts: list[Post]) -> str:
    """Why the council cannot continue; empty while it can, or while it has no question."""
    rounds = draft.channel.rounds
    if not members or not any(post.author != Author.SYSTEM for post in posts):
        return ""
    if rounds is not None and all(one.turns >= rounds for one in members):
        return f"after {rounds} rounds"
    waiting = [one for one in members if rounds is None or one.turns < rounds]
    return (
        ""
        if any(can_speak(draft.world, one) for one in waiting)
        else "when no member had more to say"
    )


def _after_the_last_question(posts: list[Post]) -> list[Post]:
    """The posts after the last question; earlier ones do not answer it."""
    asked = [post.sequence for post in posts if post.author == Author.PERSON]
    return [post for post in posts if post.sequence > (asked[-1] if asked else 0)]


def _last_words(posts: Iterable[Post]) -> dict[str, Post]:
    return {post.sender: post for post in posts if post.author == Author.AGENT}


def _text(
    channel: Channel, votes: Mapping[str, str], last: Mapping[str, Post], *, head: str
) -> str:
    words = [attributed(name, last[name].text) if name in last else f"{name}: …" for name in votes]
    return "\n\n".join((f"{headline(channel.topic)}: {head}" if channel.topic else head, *words))
