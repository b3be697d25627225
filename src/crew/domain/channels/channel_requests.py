"""What people ask of channels: open, close, say and override; assign, remove, disable members."""

from collections.abc import Iterable, Mapping

from crew.domain.channels.channel_draft import ALL_AT_ONCE, ChannelDraft
from crew.domain.channels.channel_hints import for_a_person
from crew.domain.channels.membership import (
    NewMember,
    close,
    default_rounds,
    free_id,
    join_in,
    opened,
    queue,
    take_out,
)
from crew.domain.channels.posts import addressed, sayable
from crew.domain.channels.turns import (
    INTERRUPTED,
    disable,
    end_turn,
    enqueue,
    grant,
    is_mid_turn,
    people_said,
    resume,
    settle,
)
from crew.domain.kernel.errors import Conflict, NotFound, UsageError
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import agent_name
from crew.domain.requests import Answer, Asked, Verb, typed
from crew.domain.rows.channel import (
    CREW,
    NUMBERED,
    Channel,
    ChannelOptions,
    HeldPost,
    Interrupting,
    Member,
    Mode,
    TurnOrder,
    TurnState,
)
from crew.domain.world import World


@frozen
class NamedChannel:
    channel: str


@frozen
class NewChannel(ChannelOptions):
    """`rounds`: 0 leaves the number to crew."""

    channel: str
    members: tuple[NewMember, ...] = ()
    sender: str = CREW
    rounds: int | None = 0


@frozen
class NamedMember(NamedChannel):
    member: str


@frozen
class AssignMember(NamedMember):
    agent_kind: str = ""


@frozen
class OverrideTurn(NamedMember):
    state: str


@frozen
class PostForPerson(NamedChannel):
    """`to` names members; without names the text itself may address some."""

    text: str
    sender: str
    to: tuple[str, ...] = ()


def new_channel(asked: Asked[NewChannel]) -> Answer:
    wanted = asked.request
    rounds = default_rounds(wanted.members) if wanted.rounds == 0 else wanted.rounds
    channel = Channel(
        id=free_id(asked.world, wanted.channel),
        opened_at=asked.at,
        topic=sayable(wanted.topic),
        rounds=rounds,
        mode=wanted.mode,
        order=wanted.order,
        interrupting=wanted.interrupting,
        council=wanted.council,
        timeout_s=wanted.timeout_s,
        wait_timeout_s=wanted.wait_timeout_s,
        heartbeat_s=wanted.heartbeat_s,
        announces_timeouts=wanted.announces_timeouts,
        announces_disconnects=wanted.announces_disconnects,
        detects_turn_end=wanted.detects_turn_end,
        silence_s=wanted.silence_s,
    )
    facts = opened(asked.world, channel, wanted.members, at=asked.at, asked_by=wanted.sender)
    return Answer(facts=tuple(facts), reply=channel.id)


def assign_member(asked: Asked[AssignMember]) -> Answer:
    """Add a new member, or queue one again that was removed or came back, at the end."""
    draft = channel_draft(asked)
    name = agent_name(asked.request.member)
    others = [one.name for one in draft.members() if one.assigned and one.name != name]
    if draft.channel.mode == Mode.SINGLE and others:
        raise Conflict(
            f"{draft.name} already has its one agent",
            hint=f"`crew channel remove {draft.name} {others[0]}` first, or open another channel",
            code="one_agent_only",
        )
    if name in draft.channel.members:
        _assign_again(draft, draft.member(name))
    else:
        join_in(draft, NewMember(name=name, agent_kind=asked.request.agent_kind))
    return _settled(draft, name)


def _assign_again(draft: ChannelDraft, member: Member) -> None:
    _refuse_disabled(draft, member)
    if member.takes_part:
        raise Conflict(
            f"{member.name} takes part in {draft.name} already: it is {member.state}",
            hint=for_a_person(draft, member),
            code="member_present",
        )
    if member.state == TurnState.OFFLINE and not member.is_driven:
        draft.note(member.name, "assigned", assigned=True)
        return
    queue(draft, member)


def remove_member(asked: Asked[NamedMember]) -> Answer:
    draft = channel_draft(asked)
    member = find_member(draft, asked.request.member)
    if member.takes_part:
        take_out(draft, member)
    elif member.assigned:
        draft.note(member.name, "removed_from_channel", assigned=False)
    else:
        raise Conflict(
            f"{member.name} takes no part in {draft.name}: it is {member.state}",
            hint=for_a_person(draft, member),
            code="member_absent",
        )
    return _settled(draft, member.name)


def disable_member(asked: Asked[NamedMember]) -> Answer:
    """End the turn and the step of a member; it stays offline until a person enables it."""
    draft = channel_draft(asked)
    member = find_member(draft, asked.request.member)
    if member.disabled:
        raise Conflict(
            f"{member.name} is disabled in {draft.name} already",
            hint=for_a_person(draft, member),
            code="member_disabled",
        )
    disable(draft, member.name)
    return _settled(draft, member.name)


def enable_member(asked: Asked[NamedMember]) -> Answer:
    """Let a disabled member take part again; one that connects by itself may join again."""
    draft = channel_draft(asked)
    member = find_member(draft, asked.request.member)
    if not member.disabled:
        raise Conflict(
            f"{member.name} is not disabled in {draft.name}: it is {member.state}",
            hint=for_a_person(draft, member),
            code="member_enabled",
        )
    if member.is_driven:
        draft.move(member.name, "enabled", to=TurnState.IDLE, disabled=False, errors=0)
    else:
        draft.note(member.name, "enabled", disabled=False)
    if member.is_driven and member.assigned:
        enqueue(draft, member.name)
    return _settled(draft, member.name)


def say(asked: Asked[PostForPerson]) -> Answer:
    """Post the text of a person; the channel's rule decides what happens to a turn under way."""
    draft = channel_draft(asked)
    text = sayable(asked.request.text).rstrip()
    sender = asked.request.sender
    if not text:
        raise UsageError(
            "the message is empty",
            hint="give a text, or - to read stdin",
            code="empty_message",
        )
    to = _meant(draft, text, asked.request.to)
    busy = [one.name for one in draft.members() if is_mid_turn(one)]
    how = Interrupting(draft.channel.interrupting)
    if how == Interrupting.QUEUE and busy:
        post = HeldPost(sender, text, asked.at, to)
        draft.change("held", held=(*draft.channel.held, post.values))
        return Answer(facts=tuple(draft.facts), reply={"sequence": None, "held_for": busy})
    people_said(draft, sender, text, to=to)
    if how == Interrupting.INTERRUPT:
        _interrupt(draft)
    sequence = draft.channel.sequence
    settle(draft)
    return Answer(facts=tuple(draft.facts), reply={"sequence": sequence, "held_for": []})


def _meant(draft: ChannelDraft, text: str, named: Iterable[str]) -> tuple[str, ...]:
    """The members that the text is for; a direct channel needs at least one."""
    to = tuple(find_member(draft, name).name for name in named)
    to = to or addressed(text, draft.channel.members)
    if draft.channel.mode != Mode.DIRECT or to:
        return to
    if len(draft.channel.members) == 1:
        return draft.channel.members
    raise UsageError(
        f"{draft.name} is a direct channel: name the member it is for",
        hint=f"begin with a name: @{(*draft.channel.members, 'name')[0]} …, or use --to",
        code="no_recipient",
    )


def _interrupt(draft: ChannelDraft) -> None:
    """Pause the active members until they have read the person's post; then they continue."""
    for member in draft.members():
        if member.state == TurnState.ACTIVE and is_mid_turn(member):
            draft.move(
                member.name,
                "human_interrupts",
                to=TurnState.WAITING,
                waits_for=INTERRUPTED,
                turn_ends_at=None,
                wait_ends_at=draft.at + draft.channel.wait_timeout_s,
            )


def override(asked: Asked[OverrideTurn]) -> Answer:
    """Put a member back into the queue, or let it speak now or next, as a person asks."""
    draft = channel_draft(asked)
    member = find_member(draft, asked.request.member)
    to = TurnState(asked.request.state)
    _OVERRIDES.get((TurnState(member.state), to), _refuse_override)(draft, member)
    return _settled(draft, member.name)


def _back_to_queue(draft: ChannelDraft, member: Member) -> None:
    end_turn(draft, member.name, "human_override")


def _resume_turn(draft: ChannelDraft, member: Member) -> None:
    resume(draft, member.name, "human_override")


def _speak_next(draft: ChannelDraft, member: Member) -> None:
    """Put a member at the head of the queue; it speaks at once if no member has the turn."""
    holder, is_manual = draft.channel.holder, draft.channel.order == TurnOrder.MANUAL
    if holder and is_manual:
        raise Conflict(
            f"{holder} has the turn in {draft.name}, and a person gives the next one",
            hint=f"wait for it, or end it: `crew channel override {draft.name} {holder} queued`",
            code="turn_taken",
        )
    if member.is_late and is_manual:
        raise Conflict(
            f"the step of {member.name}'s last turn in {draft.name} still runs",
            hint=f"wait for its end, or end it: `crew channel remove {draft.name} {member.name}`",
            code="step_running",
        )
    queue = (member.name, *(one for one in draft.channel.queue if one != member.name))
    draft.change("human_override", queue=queue)
    if not member.is_late and (not holder or draft.channel.mode in ALL_AT_ONCE):
        grant(draft, member.name)


def _refuse_override(draft: ChannelDraft, member: Member) -> None:
    _refuse_disabled(draft, member)
    raise Conflict(
        f"{member.name} is {member.state} in {draft.name}",
        hint=for_a_person(draft, member),
        code="member_busy",
    )


def _refuse_disabled(draft: ChannelDraft, member: Member) -> None:
    if member.disabled:
        raise Conflict(
            f"{member.name} is disabled in {draft.name}",
            hint=for_a_person(draft, member),
            code="member_disabled",
        )


_OVERRIDES = {
    (TurnState.WAITING, TurnState.QUEUED): _back_to_queue,
    (TurnState.ACTIVE, TurnState.QUEUED): _back_to_queue,
    (TurnState.WAITING, TurnState.ACTIVE): _resume_turn,
    (TurnState.QUEUED, TurnState.ACTIVE): _speak_next,
}


def close_channel(asked: Asked[NamedChannel]) -> Answer:
    draft = channel_draft(asked)
    close(draft)
    return Answer(facts=tuple(draft.facts), reply=draft.name)


def invite(asked: Asked[AssignMember]) -> Answer:
    """Make sure that this member exists; it connects by itself."""
    draft = channel_draft(asked)
    name = agent_name(asked.request.member)
    if name not in draft.channel.members:
        return assign_member(asked)
    if draft.member(name).is_driven:
        raise Conflict(
            f"crew itself drives {name} in {draft.name}",
            hint="invite a member with another name",
            code="name_taken",
        )
    return Answer(reply=draft.member(name).state)


def _settled(draft: ChannelDraft, name: str) -> Answer:
    """Settle the channel, and reply with the state of this member after that."""
    settle(draft)
    return Answer(facts=tuple(draft.facts), reply=draft.member(name).state)


def channel_draft(asked: Asked[NamedChannel]) -> ChannelDraft:
    """A draft for the open channel that the request names."""
    name = asked.request.channel
    channel = find_channel(asked.world, name)
    if not channel.is_open:
        raise Conflict(
            f"channel {name} is closed",
            hint=f"`crew channel new {channel.name}` opens another one of that name",
            code="channel_closed",
        )
    return ChannelDraft(asked.world, channel.id, at=asked.at)


def find_channel(world: World, named: str) -> Channel:
    """The newest channel of a name, or the numbered one, as in reviews@1."""
    name, numbered, number = named.partition(NUMBERED)
    of_name = (one for one in world.channels.values() if one.name == name)
    wanted = [one for one in of_name if not numbered or str(one.number) == number]
    if not wanted:
        known = ", ".join(one.name for one in world.channels.values() if one.is_open) or "none"
        raise NotFound(f"there is no channel {named!r}", hint=f"open channels: {known}")
    return max(wanted, key=lambda one: one.number)


def find_member(draft: ChannelDraft, name: str) -> Member:
    if name not in draft.channel.members:
        known = ", ".join(draft.channel.members) or "none yet"
        raise NotFound(f"{name!r} is not a member of {draft.name}", hint=f"members: {known}")
    return draft.member(name)


VERBS: Mapping[str, Verb] = {
    "channel_new": typed(NewChannel, new_channel),
    "channel_assign": typed(AssignMember, assign_member),
    "channel_remove": typed(NamedMember, remove_member),
    "channel_disable": typed(NamedMember, disable_member),
    "channel_enable": typed(NamedMember, enable_member),
    "channel_say": typed(PostForPerson, say),
    "channel_override": typed(OverrideTurn, override),
    "channel_close": typed(NamedChannel, close_channel),
    "channel_invite": typed(AssignMember, invite),
}
