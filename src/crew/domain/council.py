"""A council: a channel that comes to a decision, read from what its members said last."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from crew.domain.channel import Author, Channel, Post, TurnState
from crew.domain.channel_posts import posts_after
from crew.domain.channel_story import Story

AGREE = "AGREE"
OBJECT = "OBJECT"


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilVerdict:
    """`text` is the decision as it is recorded; `agreed` says that nobody objected."""

    agreed: bool
    text: str


def vote(text: str) -> str:
    """AGREE or OBJECT, when the last line that says anything is that word alone; else nothing."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines and lines[-1] in {AGREE, OBJECT} else ""


def council_verdict(
    channel: Channel, posts: Iterable[Post], *, members: Iterable[str], is_spent: bool
) -> CouncilVerdict | None:
    """What the council came to, or None while it goes on.

    All members agree, each with its last word; or the rounds are spent, and the last words stand.
    """
    last = _last_words(posts)
    names = list(members)
    votes = {name: vote(last[name].text) if name in last else "" for name in names}
    agreed = bool(names) and all(one == AGREE for one in votes.values())
    if not agreed and not is_spent:
        return None
    return CouncilVerdict(agreed=agreed, text=_text(channel, votes, last, agreed=agreed))


def decide_council(story: Story) -> bool:
    """Record the decision once there is one; true if it stands, so that nobody speaks any more."""
    channel = story.channel
    if not channel.council or channel.decision:
        return channel.council
    members = [one for one in story.members() if one.takes_part]
    if any(one.state != TurnState.QUEUED and (one.speaking or one.turn_ends_at) for one in members):
        return False
    spent = channel.rounds is not None and all(one.turns >= channel.rounds for one in members)
    verdict = council_verdict(
        channel,
        _since_the_last_question(story),
        members=[one.name for one in members],
        is_spent=spent and bool(members),
    )
    if verdict is None:
        return False
    story.change("decided", decision=verdict.text, agreed=verdict.agreed)
    return True


def _since_the_last_question(story: Story) -> list[Post]:
    """What was said before somebody asked anew is no answer to that."""
    posts = list(posts_after(story.world, story.channel, 0))
    asked = [post.sequence for post in posts if post.author == Author.PERSON]
    return [post for post in posts if post.sequence > (asked[-1] if asked else 0)]


def _last_words(posts: Iterable[Post]) -> dict[str, Post]:
    return {post.sender: post for post in posts if post.author == Author.AGENT}


def _text(
    channel: Channel, votes: Mapping[str, str], last: Mapping[str, Post], *, agreed: bool
) -> str:
    head = "agreed" if agreed else f"not agreed after {channel.rounds} rounds"
    words = [f"{name}: {last[name].text}" if name in last else f"{name}: …" for name in votes]
    return "\n\n".join((f"{channel.topic}: {head}" if channel.topic else head, *words))
