"""`crew channel list`, `show`, `tail` and `run`: posts, members, and whose turn is next."""

import functools
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from crew.domain.channels.channel_plan import is_resting
from crew.domain.channels.channel_requests import find_channel
from crew.domain.commands import CommandKind
from crew.domain.kernel.errors import Interrupted
from crew.domain.kernel.frozen import frozen
from crew.domain.requests import Request
from crew.domain.scope import Scope
from crew.domain.world import row_from
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import (
    counted,
    line,
    narrate,
    painted,
    print_json,
    print_json_line,
    say,
    table,
    under,
)
from crew.front.cli.params import channel_argument
from crew.runner.views.channel_views import channel_view, load_channels, load_posts, post_view
from crew.runner.views.row_views import moment
from crew.store.fact_log import last_fact, load_world
from crew.store.runner_lock import LockHeld, find_runner

if TYPE_CHECKING:
    from crew.domain.kernel.fact import Fact
    from crew.domain.rows.channel import Post
    from crew.domain.world import World
    from crew.runner.runner import Runner
    from crew.workplace import Workplace

LOOK_EVERY_S = 0.2
LIST_HEAD = ("NAME", "STATE", "MODE", "TURN", "MEMBERS", "MESSAGES", "TOPIC")
MEMBER_HEAD = ("MEMBER", "STATE", "AGENT", "TURNS", "READ", "NOW")


@command("list", example="crew channel list\ncrew channel list --all --json")
@click.option("-a", "--all", "closed_too", is_flag=True, help="Also list closed channels.")
@pass_call
def list_channels(call: Call, *, closed_too: bool) -> None:
    """List the channels."""
    world = load_channels(call.workplace().db)
    found = [one for one in world.channels.values() if closed_too or one.is_open]
    views = [channel_view(world, one) for one in sorted(found, key=lambda one: one.opened_at)]
    if call.json:
        print_json(views)
    elif views:
        newest = {one["name"]: one["id"] for one in views}  # a newer one of a name comes later
        table(LIST_HEAD, [_row(view, newest[view["name"]]) for view in views], call)
    elif world.channels:
        narrate(call, "no channel is open: `crew channel list --all` lists the closed ones")
    else:
        narrate(call, "no channels yet: `crew channel new NAME --member AGENT` opens one")


def _row(view: dict[str, Any], newest: str) -> tuple[str, ...]:
    """One row of the list; a channel whose name was used again is shown with its number."""
    return (
        view["name"] if view["id"] == newest else view["id"],
        view["state"],
        view["mode"],
        view["turn"] or "-",
        ", ".join(one["name"] for one in view["members"]) or "-",
        str(view["messages"]),
        line(view["topic"] or "-"),
    )


@command("show", example="crew channel show reviews")
@channel_argument()
@pass_call
def show(call: Call, name: str) -> None:
    """Show a channel: its members, the queue, the decision."""
    world = load_channels(call.workplace().db)
    view = channel_view(world, find_channel(world, name))
    if call.json:
        print_json(view)
        return
    limit = "no limit" if view["rounds"] is None else counted(view["rounds"], "round")
    say(f"{view['name']}: {view['state']}, {view['mode']}, {view['interrupt']}, {limit}")
    for word in ("topic", "decision"):
        if view[word]:
            say(under(word, view[word]))
    say(f"turn: {view['turn'] or 'no member'}; then: {', '.join(view['queue']) or 'no member'}")
    for one in view["held"]:
        say(f"held until the turn ends: {line(one['text'])} ({one['from']})")
    if view["members"]:
        table(MEMBER_HEAD, [_member_row(one) for one in view["members"]], call)


def _member_row(view: dict[str, Any]) -> tuple[str, ...]:
    return (
        view["name"],
        view["state"],
        view["kind"] or view["way"],
        str(view["turns"]),
        str(view["given"]),
        line(_member_now(view)),
    )


def _member_now(view: dict[str, Any]) -> str:
    if view["disabled"]:
        return "disabled"
    if view["waits_for"]:
        return f"waits for {view['waits_for']}"
    if view["speaking"] and view["state"] == "queued":
        return "the step of its last turn still runs"
    return view["last_error"] or ""


@command("tail", example="crew channel tail reviews\ncrew channel tail reviews -f --json")
@channel_argument()
@click.option("-f", "--follow", is_flag=True, help="Print new posts until Ctrl-C.")
@click.option("-n", "count", type=click.IntRange(0), default=50, help="Number of posts.")
@pass_call
def tail(call: Call, name: str, *, follow: bool, count: int) -> None:
    """Print the posts of a channel."""
    workplace = call.workplace()
    channel = find_channel(load_channels(workplace.db), name)
    last = channel.sequence
    shown = load_posts(workplace.db, channel, after=max(0, last - count))
    if call.json and not follow:
        print_json([post_view(post) for post in shown])
        return
    print_posts(call, shown)
    if follow:
        show = functools.partial(print_posts, call)
        watch = ChannelWatch(workplace=workplace, channel=channel.id, show=show)
        _follow(watch, after=last, until=_is_closed(channel.id))


def _is_closed(name: str) -> "Callable[[World], bool]":
    return lambda world: not world.channels[name].is_open


def print_posts(call: Call, posts: "Iterable[Post]") -> None:
    for post in posts:
        if call.json:
            print_json_line(post_view(post))
            continue
        head = painted(line(post.by_line), "bold", call)
        say(under(f"{str(moment(post.at))[11:19]} {head}", post.text))


@frozen
class ChannelWatch:
    """A channel that is watched, and what shows its new posts."""

    workplace: "Workplace"
    channel: str
    show: "Callable[[Iterable[Post]], None]"


def _follow(watch: ChannelWatch, *, after: int, until: "Callable[[World], bool]") -> int:
    """Show new posts until the condition is true; returns the number of the last post.

    The world may be large, so it is read again only after a change.
    """
    workplace = watch.workplace
    seen = -1
    while True:
        newest = last_fact(workplace.db)
        if newest != seen:
            world, seen = load_world(workplace.db), newest
            posts = load_posts(workplace.db, world.channels[watch.channel], after=after)
            watch.show(posts)
            after += len(posts)
        if until(world):
            return after
        time.sleep(LOOK_EVERY_S)


@command("run", example="crew channel run reviews")
@channel_argument()
@pass_call
def run(call: Call, name: str) -> int:
    """Run one channel in the foreground until its agents rest.

    It ends when no member that crew drives has anything to answer, or when the rounds are used
    up. With members that connect by themselves it runs until Ctrl-C or until the channel closes.
    """
    workplace = call.workplace()
    found = find_channel(load_channels(workplace.db), name).id
    return drive(call, workplace, found, after=None, waits_for_guests=True)


def drive(
    call: Call,
    workplace: "Workplace",
    name: str,
    *,
    after: int | None,
    waits_for_guests: bool = False,
) -> int:
    """Watch a channel until it rests; with --json the posts are one document at the end."""
    said: list[Post] = []
    show = said.extend if call.json else functools.partial(print_posts, call)
    world = load_channels(workplace.db)
    start = world.channels[name].sequence if after is None else after
    _watch(
        call,
        ChannelWatch(workplace=workplace, channel=name, show=show),
        after=start,
        waits_for_guests=waits_for_guests,
    )
    if call.json:
        print_json([post_view(post) for post in said])
    return 0


def _watch(call: Call, watch: ChannelWatch, *, after: int, waits_for_guests: bool) -> None:
    """Without a runner, this process is one for this channel only.

    The running runner may serve something else, and end before this channel rests.
    """
    workplace, name = watch.workplace, watch.channel
    while True:
        if (runner := find_runner(workplace.lock_file)) is not None:
            narrate(call, f"{name} is left to the runner that is up: pid {runner.get('pid', '?')}")
            after = _follow(watch, after=after, until=_is_quiet(workplace, name))
            if is_resting(load_world(workplace.db), name):
                return
        try:
            stays = waits_for_guests and _has_guests(load_channels(workplace.db), name)
            _drive_here(watch, after=after, stays=stays)
        except LockHeld:
            continue  # another process became the runner first
        return


def _is_quiet(workplace: "Workplace", name: str) -> "Callable[[World], bool]":
    def is_quiet(world: "World") -> bool:
        is_gone = find_runner(workplace.lock_file) is None
        return is_gone or is_resting(world, name)

    return is_quiet


def _has_guests(world: "World", name: str) -> bool:
    """Whether a member may still connect by itself, which needs a running runner."""
    members = [one for one in world.members.values() if one.channel == name]
    is_open = world.channels[name].is_open
    return is_open and any(one.assigned and not one.is_driven for one in members)


def _drive_here(watch: ChannelWatch, *, after: int, stays: bool) -> None:
    from crew.front.cli.crew.run_command import open_log  # noqa: PLC0415 - only to run a channel
    from crew.front.mcp.autostart import mcp_server  # noqa: PLC0415 - loads asyncio
    from crew.runner.run_crew import RunnerOptions, run_crew  # noqa: PLC0415 - the heaviest import of all

    workplace, name = watch.workplace, watch.channel

    def prepare(runner: "Runner") -> None:
        channel = runner.engine.world.channels[name]
        watch.show(load_posts(workplace.db, channel, after=after))
        runner.heed(Request(verb="look", args={}))

    options = RunnerOptions(
        drain=not stays,
        scope=Scope(channel=name, kinds=frozenset({CommandKind.TURN, CommandKind.VACATE})),
        patient=False,
        told=lambda facts: watch.show(_new_posts(facts, name)),
    )
    open_log(workplace)
    runner = run_crew(workplace, prepare, options=options, beside=mcp_server)
    if runner.interrupted:
        raise Interrupted("interrupted", hint=f"`crew channel run {name}` continues it")


def _new_posts(facts: "Iterable[Fact]", name: str) -> "list[Any]":
    born = (fact for fact in facts if fact.kind == "post" and fact.changes["channel"] == name)
    return [row_from("post", {**fact.changes, "id": fact.subject}) for fact in born]
