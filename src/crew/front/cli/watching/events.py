"""`crew events`: prints the log of facts."""

import contextlib
import functools
import sys
import time
from typing import Any

import click

from crew.domain.kernel.errors import NotFound
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import line, print_json, print_json_line, say
from crew.front.cli.params import DURATION
from crew.front.cli.tab_completion import complete_channels, complete_subjects
from crew.runner.views.row_views import fact_view
from crew.store.database import Database, open_database
from crew.store.fact_log import facts_after

LOOK_EVERY_S = 0.2


@command("events", example="crew events --since 10m\ncrew events -f --subject agent:A | jq .to")
@click.option("-f", "--follow", is_flag=True, help="Print new facts until Ctrl-C.")
@click.option(
    "--subject",
    metavar="S",
    shell_complete=complete_subjects,
    help="An id, or kind:id like task:12, agent:A.",
)
@click.option("--since", type=DURATION, metavar="D", help="Only the last 30s, 10m, 2h.")
@click.option(
    "--channel",
    default="",
    metavar="NAME",
    shell_complete=complete_channels,
    help="Facts of one channel, its members and its posts.",
)
@pass_call
def events(
    call: Call, *, follow: bool, subject: str | None, since: float | None, channel: str
) -> None:
    """Show what happened, fact by fact.

    Prints one JSON object per line, or an array with --json. A terminal gets readable lines.
    """
    db = open_database(call.folder() / "crew.db")
    start = 0.0 if since is None else time.time() - since
    look = functools.partial(
        facts_after, db, subject=_subject(subject), channel=_channel(db, channel), since=start
    )
    found = look()
    views = [fact_view(number, fact) for number, fact in found]
    if call.json and not follow:
        print_json(views)
        return
    readable = sys.stdout.isatty() and not follow
    while True:
        for view in views:
            say(_readable(view)) if readable else print_json_line(view)
        if not follow:
            return
        time.sleep(LOOK_EVERY_S)
        last = found[-1][0] if found else 0
        newer = look(last)
        views = [fact_view(number, fact) for number, fact in newer]
        found = newer or found


def _subject(text: str | None) -> str | None:
    """The subject of a filter; `#12` and `crew-12` are tasks too."""
    return text.removeprefix("#").removeprefix("crew-") if text else None


def _channel(db: Database, name: str) -> str:
    """The id of a named channel; an unknown channel has no events."""
    if not name:
        return ""
    from crew.domain.channels.channel_requests import find_channel  # noqa: PLC0415 - for few calls
    from crew.runner.views.channel_views import load_channels  # noqa: PLC0415

    with contextlib.suppress(NotFound):
        return find_channel(load_channels(db), name).id
    return name


def _readable(view: dict[str, Any]) -> str:
    move = f"{view['from'] or 'new'} → {view['to']}" if view["to"] else ""
    return line(
        f"{view['timestamp']}  {view['subject']}  {move or view['event']}  ({view['trigger']})"
    )
