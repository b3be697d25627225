"""Hints for requests that a channel refuses, by the state of the member."""

from crew.domain.channels.channel_draft import ChannelDraft
from crew.domain.channels.turns import INTERRUPTED
from crew.domain.rows.channel import Member, TurnState


def for_a_person(draft: ChannelDraft, member: Member) -> str:
    """What a person can do with this member now."""
    place = f"{draft.name} {member.name}"
    if member.disabled:
        return f"`crew channel enable {place}` lets it come back"
    if member.state == TurnState.OFFLINE and not member.is_driven:
        return f"it has to connect: `crew channel invite {place}` prints how"
    return {
        TurnState.QUEUED: f"`crew channel override {place} active` lets it speak next",
        TurnState.ACTIVE: f"`crew channel override {place} queued` ends its turn",
        TurnState.WAITING: f"`crew channel override {place} active` ends its wait",
    }.get(TurnState(member.state), f"`crew channel assign {place}` queues it")


def for_the_member(draft: ChannelDraft, member: Member) -> str:
    """What the member itself can do now."""
    place = f"{draft.name} {member.name}"
    if member.disabled:
        return f"end here; a person lets you come back with `crew channel enable {place}`"
    if member.waits_for == INTERRUPTED:
        return "call read-messages, then continue your turn"
    return {
        TurnState.OFFLINE: "call join-channel first",
        TurnState.IDLE: f"you take no part; a person queues you: `crew channel assign {place}`",
        TurnState.QUEUED: "read-messages with waitSeconds returns as soon as you have the turn",
        TurnState.WAITING: "your turn pauses: call wait with over=true to continue it",
        TurnState.ACTIVE: "you have the turn: post-message, turn-complete or wait",
    }[TurnState(member.state)]
