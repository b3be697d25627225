"""`crew dashboard`: the terminal view, one plain frame, or lines as things happen."""

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

import click

from crew.domain.rows.agent import SYMBOLS, AgentState
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import print_json, say
from crew.front.cli.terminal.open_terminals import runs_at_terminals
from crew.front.cli.view.dashboard_frame import (
    Painter,
    frame_lines,
    open_channels,
    open_quests,
    role_of,
)
from crew.front.cli.view.plain_lines import print_changes
from crew.front.cli.view.view_door import Showing, open_view, showing, tell_hint
from crew.runner.pause_views import pause_views, with_pauses
from crew.runner.views.channel_views import channel_view
from crew.runner.views.quest_views import quest_line
from crew.runner.views.row_views import agent_view, agents_by_age, open_question_views
from crew.store.database import Database, change_count
from crew.store.fact_log import load_world
from crew.store.kept_values import all_doing
from crew.store.runner_lock import find_runner

LOOK_EVERY_S = 0.5
QUIT_KEYS = (b"q", b"Q", b"\x03", b"\x1b")


@command("dashboard", example="crew dashboard\ncrew d --once\ncrew d --plain | tee today.txt")
@click.option("--once", is_flag=True, help="Print one frame and exit.")
@click.option("--plain", is_flag=True, help="Print a line for each change, until Ctrl-C.")
@pass_call
def dashboard(call: Call, *, once: bool, plain: bool) -> int:
    """Watch the crew live.

    Opens the terminal view, as `crew tui` does. q closes it; the crew keeps running. Without a
    terminal one frame is printed. --plain suits screen readers and pipes.
    """
    if call.json or once:
        _show_once(call)
        return 0
    found = Showing.LINES if plain else showing()
    if found == Showing.VIEW:
        return open_view(call)
    if found == Showing.NOTHING:
        _show_once(call)
        return 0
    if not plain:
        tell_hint(call, found)
    if found == Showing.LINES:
        return print_changes(call.workplace())
    _repaint(call)
    return 0


def _show_once(call: Call) -> None:
    """One frame, or the same as one document."""
    workplace = call.workplace()
    db = workplace.db
    runs_at_terminals(workplace.folder, db)  # a terminal may show a dialog
    if call.json:
        _print_json(call, db, find_runner(workplace.lock_file))
        return
    for text in frame_lines(call, workplace, db):
        say(text)


def _repaint(call: Call) -> None:
    """Draw a frame after every change, in plain ANSI, until a key ends it."""
    workplace = call.workplace()
    db = workplace.db
    runs_at_terminals(workplace.folder, db)
    painter = Painter(sys.stdout)
    with _keys():
        while True:
            seen = change_count(db)
            painter.paint([*frame_lines(call, workplace, db), "", "q ends this view"])
            while change_count(db) == seen:
                if _pressed(LOOK_EVERY_S) in QUIT_KEYS:
                    return


@contextmanager
def _keys() -> Iterator[None]:
    """Yield keys one by one without echo; restore the terminal afterwards."""
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _pressed(wait_s: float) -> bytes:
    readable, _, _ = select.select([sys.stdin], [], [], wait_s)
    return (os.read(sys.stdin.fileno(), 1) or b"q") if readable else b""


def _print_json(call: Call, db: Database, runner: dict[str, object] | None) -> None:
    world, doing = load_world(db), all_doing(db)
    agents = [
        {
            **agent_view(world, agent, runner_up=runner is not None),
            **role_of(world, agent),
            "symbol": SYMBOLS[AgentState(agent.state)],
            "doing": doing.get(agent.id) if runner and agent.state == AgentState.WORKING else None,
        }
        for agent in agents_by_age(world)
    ]
    waiting = [
        {"target": queue.id, "reason": queue.waiting, "remedy": queue.remedy}
        for queue in world.queues.values()
        if queue.waiting
    ]
    speaking = [
        {"channel": one.channel, "name": one.name, "kind": one.agent_kind}
        for one in world.members.values()
        if one.speaking and runner
    ]
    print_json(
        {
            "runner": runner,
            "agents": with_pauses(world, agents, lambda: call.workplace().rules),
            "paused": pause_views(world),
            "speaking": speaking,
            "waiting": waiting,
            "questions": open_question_views(world),
            "quests": [quest_line(world, one) for one in open_quests(world)],
            "channels": [channel_view(world, one) for one in open_channels(world)],
            "awaits_merge": [task.id for task in world.tasks.values() if task.awaits_merge],
        }
    )
