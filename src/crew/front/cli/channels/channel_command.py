"""`crew channel`: conversations of agents and people in which one speaks at a time."""

import getpass
import os
from typing import TYPE_CHECKING, Any

import click

from crew.domain.channels.channel_requests import find_channel
from crew.domain.kernel.errors import NeedsLogin, UsageError
from crew.domain.requests import Request
from crew.domain.rows.channel import Interrupting, Mode, TurnOrder
from crew.front.cli.call import Call, pass_call
from crew.front.cli.channels.channel_invite import invite
from crew.front.cli.channels.channel_watch import drive, list_channels, run, show, tail
from crew.front.cli.command_shape import CrewGroup, command
from crew.front.cli.output import narrate, print_json, say
from crew.front.cli.params import DURATION, channel_argument, member_argument, text_or_stdin
from crew.front.cli.tab_completion import complete_kinds
from crew.runner.requests.ask_crew import ask
from crew.runner.requests.ask_with_token import ask_with_token, is_shut_in
from crew.runner.views.channel_views import channel_view, load_channels
from crew.store.fact_log import load_world

if TYPE_CHECKING:
    from crew.domain.world import World
    from crew.workplace import Workplace

EXAMPLE = """crew channel new reviews --member claude --member codex --topic "Is the parser sound?"
crew channel new standup --member pm=claude --member dev=codex --timeout 5m --rounds 3
crew channel new plan --council --topic "Split the store?" --member claude --member codex"""


@click.group(
    "channel",
    cls=CrewGroup,
    example="crew channel new reviews --member claude --member codex\ncrew channel tail reviews -f",
)
def channel() -> None:
    """Let agents and people talk, one at a time."""


def _choice(kind: Any) -> click.Choice[str]:
    return click.Choice([str(one) for one in kind])


@command("new", example=EXAMPLE)
@click.argument("name")
@click.option(
    "--member",
    "members",
    metavar="AGENT",
    multiple=True,
    shell_complete=complete_kinds,
    help="A configured agent, NAME=AGENT to call it NAME here, or a name that will connect.",
)
@click.option("--timeout", type=DURATION, metavar="D", help="Time limit of a turn.  [default: 60s]")
@click.option(
    "--interrupt",
    type=_choice(Interrupting),
    help="How a person's post affects the turn.  [default: inject]",
)
@click.option("--mode", type=_choice(Mode), default="turn-based", help="How members take turns.")
@click.option("--order", type=_choice(TurnOrder), default="round-robin", help="Order of the turns.")
@click.option(
    "--topic", default="", metavar="TEXT", help="First message of the channel; - reads stdin."
)
@click.option(
    "--rounds",
    type=click.IntRange(0),
    help="Turns for each member until a person speaks; 0 means no limit.",
)
@click.option(
    "--council", is_flag=True, help="Talk until all members AGREE or the rounds are used up."
)
@click.option(
    "--member-timeout",
    "timeouts",
    metavar="NAME=D",
    multiple=True,
    help="Turn timeout of one member.",
)
@click.option(
    "--priority",
    "priorities",
    metavar="NAME=1..10",
    multiple=True,
    help="Priority of one member.  [default: 5]",
)
@click.option(
    "--heartbeat",
    type=DURATION,
    metavar="D",
    help="Mark a connected member offline after this long without a heartbeat.  [default: 2m]",
)
@click.option(
    "--wait-timeout",
    type=DURATION,
    metavar="D",
    help="Time limit of a wait inside a turn.  [default: 5m]",
)
@click.option("--silence", type=DURATION, metavar="D", help="End a turn after this much silence.")
@pass_call
def new(call: Call, /, name: str, **wishes: Any) -> None:
    """Open a channel.

    Agents that crew drives talk while `crew run` or `crew channel run` is up. Without a person
    they pause after --rounds (5) until a person speaks.
    """
    workplace = call.workplace()
    args = _opening(workplace, load_world(workplace.db), wishes)
    ask(workplace, Request(verb="channel_new", args={"channel": name, **args}))
    for one in args["members"]:
        if not one["agent_kind"]:
            hint = f"`crew channel invite {name} {one['name']}` prints how it connects"
            narrate(call, f"no agent is configured as {one['name']}: {hint}")
    if call.json:
        world = load_channels(workplace.db)
        print_json(channel_view(world, find_channel(world, name)))
    else:
        say(name)


def _opening(workplace: "Workplace", world: "World", wishes: dict[str, Any]) -> dict[str, Any]:
    """The channel's settings: those of the command line, then `[channel]` of the config."""
    settings = workplace.settings.channel
    args = {
        "members": _members(workplace, world, wishes),
        "sender": person(),
        "topic": text_or_stdin(wishes["topic"]) or "",
        "mode": wishes["mode"],
        "order": wishes["order"],
        "council": wishes["council"],
        "interrupting": wishes["interrupt"] or settings.interrupt,
        "timeout_s": _given(wishes["timeout"], settings.timeout_s),
        "wait_timeout_s": _given(wishes["wait_timeout"], settings.wait_timeout_s),
        "heartbeat_s": _given(wishes["heartbeat"], settings.heartbeat_s),
        "announces_timeouts": settings.announce_timeouts,
        "announces_disconnects": settings.announce_disconnects,
        "detects_turn_end": bool(wishes["silence"]) or settings.auto_detect_turn_end,
        "silence_s": wishes["silence"] or settings.auto_detect_silence_s,
    }
    if wishes["rounds"] is not None:
        args["rounds"] = wishes["rounds"] or None
    return args


def _given(wish: float | None, usual: float) -> float:
    return usual if wish is None else wish


def _members(
    workplace: "Workplace", world: "World", wishes: dict[str, Any]
) -> list[dict[str, Any]]:
    members = [member_from(workplace, world, text) for text in wishes["members"]]
    known = {one["name"] for one in members}
    for option, key in (("timeouts", "timeout_s"), ("priorities", "priority")):
        for text in wishes[option]:
            name, _, value = text.partition("=")
            if name not in known:
                raise UsageError(f"{name!r} is not a member", hint=f"members: {', '.join(known)}")
            one = next(one for one in members if one["name"] == name)
            one[key] = DURATION.convert(value, None, None) if key == "timeout_s" else _rank(value)
    return members


def _rank(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= 10:
        return int(text)
    raise UsageError(
        f"{text!r} is not a priority", hint="give a whole number from 1 to 10; the default is 5"
    )


def member_from(workplace: "Workplace", world: "World", text: str) -> dict[str, Any]:
    """A member from `NAME=AGENT`, an agent kind or an agent; any other name connects by itself."""
    name, given, kind = text.partition("=")
    known = workplace.settings.agents.by_name
    if given:
        return {"name": name, "agent_kind": workplace.settings.agents.named(kind).name}
    if name in known:
        return {"name": name, "agent_kind": name}
    agent = world.crew.get(name)
    return {"name": name, "agent_kind": agent.agent_kind if agent else ""}


def person() -> str:
    """The name of the person at this terminal."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "person"


@command("assign", example="crew channel assign reviews codex")
@channel_argument()
@click.argument("agent", shell_complete=complete_kinds)
@pass_call
def assign(call: Call, name: str, agent: str) -> None:
    """Add a member, or queue one again that was removed or came back."""
    workplace = call.workplace()
    member = member_from(workplace, load_world(workplace.db), agent)
    _tell(
        call,
        name,
        member["name"],
        _asked(workplace, "assign", name, member=member["name"], agent_kind=member["agent_kind"]),
    )


@command("remove", example="crew channel remove reviews codex")
@channel_argument()
@member_argument()
@pass_call
def remove(call: Call, name: str, agent: str) -> None:
    """Remove a member; if it has the turn, the next member gets it."""
    _tell(call, name, agent, _asked(call.workplace(), "remove", name, member=agent))


@command("disable", example="crew channel disable reviews codex")
@channel_argument()
@member_argument()
@pass_call
def disable(call: Call, name: str, agent: str) -> None:
    """Set a member offline until it is enabled again; its turn and its step end.

    It stays a member and keeps its session. `crew channel enable` brings it back.
    """
    _tell(call, name, agent, _asked(call.workplace(), "disable", name, member=agent))


@command("enable", example="crew channel enable reviews codex")
@channel_argument()
@member_argument()
@pass_call
def enable(call: Call, name: str, agent: str) -> None:
    """Enable a member that was disabled.

    A member that crew drives is queued at the end. One that connects by itself joins again.
    """
    _tell(call, name, agent, _asked(call.workplace(), "enable", name, member=agent))


@command("override", example="crew channel override reviews codex active")
@channel_argument()
@member_argument()
@click.argument("state", type=click.Choice(["queued", "active"]))
@pass_call
def override(call: Call, name: str, agent: str, state: str) -> None:
    """End the turn or wait of a member (queued), or let it speak now or next (active)."""
    _tell(call, name, agent, _asked(call.workplace(), "override", name, member=agent, state=state))


@command(
    "say", example='crew channel say reviews "Mind the tests"\ncrew channel say reviews - --wait'
)
@channel_argument()
@click.argument("text")
@click.option(
    "--to",
    multiple=True,
    metavar="AGENT",
    help="The member it is for; `@name` at the start works too.",
)
@click.option("--wait", is_flag=True, help="Wait until the agents have answered.")
@pass_call
def say_in_channel(call: Call, name: str, text: str, *, to: tuple[str, ...], wait: bool) -> int:
    """Post as a person.

    --interrupt of the channel decides what a post does to the present turn.
    """
    words = text_or_stdin(text) or ""
    reply = _said(call, name, words, to)
    if call.json and not wait:
        print_json({"channel": name, **reply})
    elif reply.get("held_for"):
        narrate(call, f"it is posted when the turn of {', '.join(reply['held_for'])} ends")
    if not wait:
        return 0
    workplace = call.workplace()
    found = find_channel(load_channels(workplace.db), name).id
    return drive(call, workplace, found, after=reply.get("sequence"))


def _said(call: Call, name: str, words: str, to: tuple[str, ...]) -> dict[str, Any]:
    """Post as a person; an agent that types this posts as the member that it is, or is refused."""
    token = os.environ.get("CREW_TOKEN", "")
    if not token:
        args = {"text": words, "sender": person(), "to": list(to)}
        reply: dict[str, Any] = _asked(call.workplace(), "say", name, **args)
        return reply
    if os.environ.get("CREW_CHANNEL") != _id_of_channel(call, name):
        raise NeedsLogin(
            f"this is an agent's step, and it is not a member of {name}",
            hint="write it in your answer, or ask with `crew signal`",
        )
    request = Request(verb="channel_post", args={"token": token, "text": words})
    ask_with_token(request, find=call.workplace)
    return {}


def _id_of_channel(call: Call, name: str) -> str:
    """The id that a name stands for; inside a sandbox only the id itself is known."""
    if is_shut_in(call.directory):
        return name
    found: str = find_channel(load_channels(call.workplace().db), name).id
    return found


@command("close", example="crew channel close reviews")
@channel_argument()
@pass_call
def close(call: Call, name: str) -> None:
    """Close a channel; its posts stay."""
    _asked(call.workplace(), "close", name)
    if call.json:
        print_json({"name": name, "state": "closed"})
    else:
        narrate(call, f"{name} is closed")


def _asked(workplace: "Workplace", verb: str, name: str, **args: Any) -> Any:
    return ask(workplace, Request(verb=f"channel_{verb}", args={"channel": name, **args}))


def _tell(call: Call, name: str, member: str, state: str) -> None:
    if call.json:
        print_json({"channel": name, "name": member, "state": state})
    else:
        say(f"{member} is {state}")


for _command in (
    *(new, list_channels, show, assign, remove, disable, enable),
    *(say_in_channel, tail, override, close, invite, run),
):
    channel.add_command(_command)
