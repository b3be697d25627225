"""What people ask of channels: open, assign, remove, disable, enable, say, override, close."""

from collections.abc import Iterable, Mapping

from crew.domain.channels.channel_draft import ALL_AT_ONCE, Story
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
from crew.domain.kernel.names import agent_name
from crew.domain.requests import Answer, Asked, Verb
from crew.domain.rows.channel import (
    CREW,
    NUMBERED,
    Channel,
    Interrupting,
    Member,
    Mode,
    TurnOrder,
    TurnState,
)
from crew.domain.world import World


def new_channel(asked: Asked) -> Answer:
    args = dict(asked.args)
    members = [NewMember(**one) for one in args.pop("members", ())]
    by = str(args.pop("sender", CREW))
    args["topic"] = sayable(str(args.get("topic", "")))
    args.setdefault("rounds", default_rounds(members))
    name = free_id(asked.world, str(args.pop("channel")))
    channel = Channel(id=name, opened_at=asked.at, **args)
    facts = opened(asked.world, channel, members, at=asked.at, asked_by=by)
    return Answer(facts=tuple(facts), reply=channel.id)


def assign_member(asked: Asked) -> Answer:
    """Who is new is added, who was removed or came back is queued again, at the end."""
    story = story_of(asked)
    name = agent_name(str(asked.args["member"]))
    others = [one.name for one in story.members() if one.assigned and one.name != name]
    if story.channel.mode == Mode.SINGLE and others:
        raise Conflict(
            f"{story.name} already has its one agent",
            hint=f"`crew channel remove {story.name} {others[0]}` first, or open another channel",
            code="one_agent_only",
        )
    if name in story.channel.members:
        _assign_again(story, story.member(name))
    else:
        join_in(story, NewMember(name=name, agent_kind=str(asked.args.get("agent_kind") or "")))
    return _settled(story, name)


def _assign_again(story: Story, member: Member) -> None:
    if member.disabled:
        raise Conflict(
            f"{member.name} is disabled in {story.name}",
            hint=for_a_person(story, member),
            code="member_disabled",
        )
    if member.takes_part:
        raise Conflict(
            f"{member.name} takes part in {story.name} already: it is {member.state}",
            hint=for_a_person(story, member),
            code="member_present",
        )
    if member.state == TurnState.OFFLINE and not member.is_driven:
        story.note(member.name, "assigned", assigned=True)
        return
    queue(story, member)


def remove_member(asked: Asked) -> Answer:
    story = story_of(asked)
    member = find_member(story, str(asked.args["member"]))
    if member.takes_part:
        take_out(story, member)
    elif member.assigned:
        story.note(member.name, "removed_from_channel", assigned=False)
    else:
        raise Conflict(
            f"{member.name} takes no part in {story.name}: it is {member.state}",
            hint=for_a_person(story, member),
            code="member_absent",
        )
    return _settled(story, member.name)


def disable_member(asked: Asked) -> Answer:
    """Its turn and its step end; it stays a member that a person can enable again."""
    story = story_of(asked)
    member = find_member(story, str(asked.args["member"]))
    if member.disabled:
        raise Conflict(
            f"{member.name} is disabled in {story.name} already",
            hint=for_a_person(story, member),
            code="member_disabled",
        )
    disable(story, member.name)
    return _settled(story, member.name)


def enable_member(asked: Asked) -> Answer:
    """A driven member takes part again if it did before; one that connects may join again."""
    story = story_of(asked)
    member = find_member(story, str(asked.args["member"]))
    if not member.disabled:
        raise Conflict(
            f"{member.name} is not disabled in {story.name}: it is {member.state}",
            hint=for_a_person(story, member),
            code="member_enabled",
        )
    if member.is_driven:
        story.move(member.name, "enabled", to=TurnState.IDLE, disabled=False, errors=0)
    else:
        story.note(member.name, "enabled", disabled=False)
    if member.is_driven and member.assigned:
        enqueue(story, member.name)
    return _settled(story, member.name)


def say(asked: Asked) -> Answer:
    """A person speaks at any time; what that does to a turn under way is the channel's rule."""
    story = story_of(asked)
    text = sayable(str(asked.args["text"])).rstrip()
    sender = str(asked.args["sender"])
    if not text:
        raise UsageError(
            "the text is empty",
            hint="give a text, or - to read stdin",
            code="empty_message",
        )
    to = _meant(story, text, asked.args.get("to") or ())
    busy = [one.name for one in story.members() if is_mid_turn(one)]
    how = Interrupting(story.channel.interrupting)
    if how == Interrupting.QUEUE and busy:
        held = (*story.channel.held, (sender, text, asked.at, *to))
        story.change("held", held=held)
        return Answer(facts=tuple(story.facts), reply={"sequence": None, "held_for": busy})
    people_said(story, sender, text, to=to)
    if how == Interrupting.INTERRUPT:
        _interrupt(story)
    sequence = story.channel.sequence
    settle(story)
    return Answer(facts=tuple(story.facts), reply={"sequence": sequence, "held_for": []})


def _meant(story: Story, text: str, named: Iterable[str]) -> tuple[str, ...]:
    """Whom it is for; in a direct channel it must be somebody."""
    to = tuple(find_member(story, str(name)).name for name in named)
    to = to or addressed(text, story.channel.members)
    if story.channel.mode != Mode.DIRECT or to:
        return to
    if len(story.channel.members) == 1:
        return story.channel.members
    raise UsageError(
        f"{story.name} is a direct channel: name the member it is for",
        hint=f"begin with a name: @{(*story.channel.members, 'name')[0]} …, or use --to",
        code="no_recipient",
    )


def _interrupt(story: Story) -> None:
    """Whoever has the turn pauses until the person's word is heard, and then goes on."""
    for member in story.members():
        if member.state == TurnState.ACTIVE and is_mid_turn(member):
            story.move(
                member.name,
                "human_interrupts",
                to=TurnState.WAITING,
                waits_for=INTERRUPTED,
                turn_ends_at=None,
                wait_ends_at=story.at + story.channel.wait_timeout_s,
            )


def override(asked: Asked) -> Answer:
    """A person puts somebody back into the queue, or lets him speak now or next."""
    story = story_of(asked)
    member = find_member(story, str(asked.args["member"]))
    to = TurnState(str(asked.args["state"]))
    _OVERRIDES.get((TurnState(member.state), to), _refuse_override)(story, member)
    return _settled(story, member.name)


def _back_to_queue(story: Story, member: Member) -> None:
    end_turn(story, member.name, "human_override")


def _go_on(story: Story, member: Member) -> None:
    resume(story, member.name, "human_override")


def _speak_next(story: Story, member: Member) -> None:
    """At the head of the queue; at once, where nobody has the turn."""
    holder, is_manual = story.channel.holder, story.channel.order == TurnOrder.MANUAL
    if holder and is_manual:
        raise Conflict(
            f"{holder} has the turn in {story.name}, and a person gives the next one",
            hint=f"wait for it, or end it: `crew channel override {story.name} {holder} queued`",
            code="turn_taken",
        )
    if member.is_late and is_manual:
        raise Conflict(
            f"the step of {member.name}'s last turn in {story.name} still runs",
            hint=f"wait for its end, or end it: `crew channel remove {story.name} {member.name}`",
            code="step_running",
        )
    queue = (member.name, *(one for one in story.channel.queue if one != member.name))
    story.change("human_override", queue=queue)
    if not member.is_late and (not holder or story.channel.mode in ALL_AT_ONCE):
        grant(story, member.name)


def _refuse_override(story: Story, member: Member) -> None:
    how = "disabled" if member.disabled else member.state
    raise Conflict(
        f"{member.name} is {how} in {story.name}",
        hint=for_a_person(story, member),
        code="member_busy",
    )


_OVERRIDES = {
    (TurnState.WAITING, TurnState.QUEUED): _back_to_queue,
    (TurnState.ACTIVE, TurnState.QUEUED): _back_to_queue,
    (TurnState.WAITING, TurnState.ACTIVE): _go_on,
    (TurnState.QUEUED, TurnState.ACTIVE): _speak_next,
}


def close_channel(asked: Asked) -> Answer:
    story = story_of(asked)
    close(story)
    return Answer(facts=tuple(story.facts), reply=story.name)


def invite(asked: Asked) -> Answer:
    """Make sure that there is such a member, one that connects by itself."""
    story = story_of(asked)
    name = agent_name(str(asked.args["member"]))
    if name not in story.channel.members:
        return assign_member(asked)
    if story.member(name).is_driven:
        raise Conflict(
            f"crew itself drives {name} in {story.name}",
            hint="invite a member with another name",
            code="name_taken",
        )
    return Answer(reply=story.member(name).state)


def _settled(story: Story, name: str) -> Answer:
    """What follows at once, and the state that this member has then."""
    settle(story)
    return Answer(facts=tuple(story.facts), reply=story.member(name).state)


def story_of(asked: Asked) -> Story:
    """The story of an open channel that a request names."""
    name = str(asked.args["channel"])
    channel = find_channel(asked.world, name)
    if not channel.is_open:
        raise Conflict(
            f"channel {name} is closed",
            hint=f"`crew channel new {channel.name}` opens another one of that name",
            code="channel_closed",
        )
    return Story(world=asked.world, name=channel.id, at=asked.at)


def find_channel(world: World, named: str) -> Channel:
    """The newest channel of a name, or with a number, as in reviews@1, that very one."""
    name, numbered, number = named.partition(NUMBERED)
    of_name = (one for one in world.channels.values() if one.name == name)
    wanted = [one for one in of_name if not numbered or str(one.number) == number]
    if not wanted:
        known = ", ".join(one.name for one in world.channels.values() if one.is_open) or "none"
        raise NotFound(f"there is no channel {named!r}", hint=f"open channels: {known}")
    return max(wanted, key=lambda one: one.number)


def find_member(story: Story, name: str) -> Member:
    if name not in story.channel.members:
        known = ", ".join(story.channel.members) or "nobody"
        raise NotFound(f"{name!r} is no member of {story.name}", hint=f"members: {known}")
    return story.member(name)


VERBS: Mapping[str, Verb] = {
    "channel_new": new_channel,
    "channel_assign": assign_member,
    "channel_remove": remove_member,
    "channel_disable": disable_member,
    "channel_enable": enable_member,
    "channel_say": say,
    "channel_override": override,
    "channel_close": close_channel,
    "channel_invite": invite,
}
