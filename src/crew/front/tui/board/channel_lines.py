"""Channels as lines: the turn, the members in their order, and the conversation."""

from collections.abc import Iterator, Mapping, Sequence

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.channel import CREW, Author, Channel, Member, Post, member_id
from crew.domain.world import World
from crew.front.cli.output import counted
from crew.front.tui.board.kept_results import by_identity
from crew.front.tui.board.status_line import clock
from crew.front.tui.board.task_cells import age
from crew.front.tui.widgets.line_list import ShownLine, text_line
from crew.front.tui.widgets.paint import fit
from crew.front.tui.widgets.safe_text import Span, safe
from crew.front.tui.widgets.sheet import wrapped

MOST_POSTS = 300
"""The most posts of a conversation that are shown; `crew channel tail` has all."""

_STATE_STYLES = {
    "active": ("●", "busy"),
    "waiting": ("◐", "warn"),
    "queued": ("○", ""),
    "idle": ("·", "muted"),
    "offline": ("-", "muted"),
}


@frozen
class ChannelLine:
    """A channel, or a line about one of its members, which has no key."""

    channel: str
    key: str
    spans: tuple[Span, ...]

    @property
    def line(self) -> ShownLine:
        return ShownLine(spans=self.spans, key=self.key, is_heading=not self.key)


def open_channels(world: World) -> list[Channel]:
    found = (one for one in world.channels.values() if one.is_open)
    return sorted(found, key=lambda one: one.opened_at)


def channel_lines(world: World, *, now: float) -> list[ChannelLine]:
    """Each open channel, and below it its members in the order of their turns."""
    lines: list[ChannelLine] = []
    for channel in open_channels(world):
        lines.append(_channel_line(channel))
        lines += [_member_line(channel, one, now=now) for one in _in_order(world, channel)]
    return lines


def _channel_line(channel: Channel) -> ChannelLine:
    turn = f"{channel.holder} has the turn" if channel.holder else "no member has the turn"
    then = f", then {', '.join(channel.queue)}" if channel.queue else ""
    kind = "council" if channel.council else channel.mode
    held = f", {len(channel.held)} held" if channel.held else ""
    spans = (
        (fit(safe(channel.name), 14), "bold"),
        (" ", ""),
        (fit(f"{safe(kind)}, {counted(channel.sequence, 'post')}{held}", 24), "muted"),
        (" ", ""),
        (safe(f"{turn}{then}"), "busy" if channel.holder else "muted"),
        (f"  {safe(channel.topic)}" if channel.topic else "", ""),
    )
    return ChannelLine(channel=channel.id, key=channel.id, spans=spans)


def _in_order(world: World, channel: Channel) -> Iterator[Member]:
    """The member that has the turn, those in the queue, then all others."""
    first = [*filter(None, (channel.holder,)), *channel.queue]
    for name in dict.fromkeys([*first, *channel.members]):
        if (found := world.members.get(member_id(channel.id, name))) is not None:
            yield found


def _member_line(channel: Channel, member: Member, *, now: float) -> ChannelLine:
    symbol, style = _STATE_STYLES.get(member.state, ("·", "muted"))
    place = channel.queue.index(member.name) + 1 if member.name in channel.queue else 0
    spans = (
        (f"  {symbol} ", style),
        (fit(f"{place}." if place else "", 3), "muted"),
        (fit(safe(member.name), 14), ""),
        (fit(member.state, 8), style),
        (" ", ""),
        (fit(safe(member.agent_kind or member.way), 12), "muted"),
        (f" {counted(member.turn, 'turn')}  ", "muted"),
        (safe(_member_now(member, now=now)), "note"),
    )
    return ChannelLine(channel=channel.id, key="", spans=spans)


def _member_now(member: Member, *, now: float) -> str:
    if member.disabled:
        return "disabled"
    if member.waits_for:
        return f"waits for {member.waits_for}"
    if member.is_late:
        return "the step of its last turn still runs"
    left = (member.turn_ends_at or now) - now
    ends = f", {age(left)} left" if left > 0 else ""
    if member.speaking:
        return f"speaks{ends}"
    return f"has the turn{ends}" if member.state == "active" else member.last_error


@by_identity
def _by_channel(posts: Mapping[str, Post]) -> Mapping[str, list[Post]]:
    found: dict[str, list[Post]] = {}
    for post in posts.values():
        found.setdefault(post.channel, []).append(post)
    return {name: sorted(some, key=lambda one: one.sequence) for name, some in found.items()}


def conversation(world: World, channel: str, width: int, *, now: float) -> list[ShownLine]:
    """The posts of a channel, the newest last, and those that wait for the end of a turn."""
    posts: Sequence[Post] = _by_channel(world.posts).get(channel, [])
    lines: list[ShownLine] = []
    for post in posts[-MOST_POSTS:]:
        lines += _post_lines(post, width, now=now)
    found = world.channels.get(channel)
    for held in found.held_posts if found else ():
        lines.append(text_line(f"{safe(held.sender)}, held until the turn ends:", "warn"))
        lines += wrapped(held.text, width, "muted", before=("  ", ""))
    return lines


def _post_lines(post: Post, width: int, *, now: float) -> list[ShownLine]:
    is_person = post.author == Author.PERSON and post.sender != CREW
    style = "key" if is_person else "muted" if post.sender == CREW else "busy"
    head = ShownLine(
        spans=((f"{clock(post.at, now)} ", "muted"), (safe(post.by_line), f"bold {style}"))
    )
    return [head, *wrapped(post.text, width, before=("  ", ""))]
