"""The documents of channels: the fields of `crew channel list`, `show` and `tail`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crew.domain.rows.channel import NUMBERED, Post, member_id, post_id
from crew.domain.world import with_rows
from crew.runner.views.row_views import moment
from crew.store.fact_log import load_rows, load_some

if TYPE_CHECKING:
    from crew.domain.rows.channel import Channel, Member
    from crew.domain.world import World
    from crew.store.database import Database


def channel_view(world: World, channel: Channel) -> dict[str, Any]:
    members = [world.members[member_id(channel.id, name)] for name in channel.members]
    return {
        "name": channel.name,
        "id": f"{channel.name}{NUMBERED}{channel.number}",
        "state": channel.state,
        "mode": channel.mode,
        "order": channel.order,
        "interrupt": channel.interrupting,
        "topic": channel.topic or None,
        "turn": channel.holder or None,
        "queue": list(channel.queue),
        "rounds": channel.rounds,
        "timeout_s": channel.timeout_s,
        "council": channel.council,
        "decision": channel.decision or None,
        "agreed": channel.agreed if channel.decision else None,
        "messages": channel.sequence,
        "held": [
            {"from": post.sender, "to": list(post.to), "text": post.text, "at": moment(post.at)}
            for post in channel.held_posts
        ],
        "members": [member_view(member) for member in members],
        "opened_at": moment(channel.opened_at),
        "closed_at": moment(channel.closed_at),
    }


def member_view(member: Member) -> dict[str, Any]:
    return {
        "name": member.name,
        "state": member.state,
        "disabled": member.disabled,
        "speaking": member.speaking,
        "way": member.way,
        "kind": member.agent_kind or None,
        "priority": member.priority,
        "timeout_s": member.timeout_s,
        "turns": member.turn,
        "turn_ends_at": moment(member.turn_ends_at),
        "waits_for": member.waits_for or None,
        "given": max((member.given, *member.heard)),
        "acknowledged": member.acknowledged,
        "last_error": member.last_error or None,
        "steps": member.steps,
        "total_input_tokens": member.input_tokens,
        "total_output_tokens": member.output_tokens,
        "total_cost_usd": member.cost_usd if member.cost_usd is None else round(member.cost_usd, 6),
    }


def load_channels(db: Database) -> World:
    """Load the channels and their members, and no other rows."""
    return with_rows([*load_rows(db, "channel").values(), *load_rows(db, "member").values()])


def load_posts(db: Database, channel: Channel, *, after: int = 0) -> list[Post]:
    """The posts of a channel after this number, even of a closed one."""
    numbers = range(after + 1, channel.sequence + 1)
    found = load_some(db, "post", (post_id(channel.id, number) for number in numbers))
    return [row for row in found if isinstance(row, Post)]


def post_view(post: Post) -> dict[str, Any]:
    return {
        "id": post.id,
        "channel": post.channel,
        "sequence": post.sequence,
        "from": post.sender,
        "by": post.author,
        "to": list(post.to),
        "text": post.text,
        "late": post.late,
        "at": moment(post.at),
    }
