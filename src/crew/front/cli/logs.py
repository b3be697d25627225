"""`crew peek` and `crew logs`: what an agent printed, safe to show."""

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crew.agents.output import LineSplitter, plain
from crew.agents.tmux import Tmux, capture, find_session
from crew.domain.names import pane_name
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command import command
from crew.front.cli.output import narrate, print_json, print_json_line, safe, say
from crew.front.cli.params import DURATION, subject_argument
from crew.front.cli.subjects import task_of
from crew.store.facts import facts_after

if TYPE_CHECKING:
    from crew.runner.workplace import Workplace

LOOK_EVERY_S = 0.2
CHUNK = 65536


@command("peek", example="crew peek A\ncrew peek 12 -n 100")
@subject_argument()
@click.option(
    "-n", "--lines", "count", type=click.IntRange(1), default=30, help="How many lines; 30."
)
@pass_call
def peek(call: Call, subject: str, count: int) -> None:
    """Show the last lines an agent printed.

    Of a terminal session, what it shows now.
    """
    workplace = call.workplace()
    task = task_of(workplace, subject)
    server = Tmux(folder=workplace.folder)
    if find_session(server, pane_name(task)):
        shown = capture(server, pane_name(task), lines=count, colours=True)
        _print(call, task, shown.splitlines())
        return
    _print(call, task, list(deque(_lines(workplace.task_log(task)), maxlen=count)))


@command("logs", example="crew logs A -f\ncrew logs 12 --since 10m")
@subject_argument()
@click.option("-f", "--follow", is_flag=True, help="Go on as more is printed, until Ctrl-C.")
@click.option(
    "--since", type=DURATION, metavar="D", help="Only the steps of the last 30s, 10m, 2h."
)
@pass_call
def logs(call: Call, subject: str, *, follow: bool, since: float | None) -> None:
    """Show what an agent printed."""
    workplace = call.workplace()
    task = task_of(workplace, subject)
    log = workplace.task_log(task)
    start = 0 if since is None else _start_of(workplace, task, time.time() - since)
    if not follow:
        _print(call, task, list(_lines(log, start)))
        return
    for text in _followed(log, start):
        if call.json:
            print_json_line({"task": task, "line": plain(text)})
        else:
            print(safe(text, call), flush=True)


def _print(call: Call, task: str, lines: list[str]) -> None:
    if call.json:
        print_json({"task": task, "lines": [plain(text) for text in lines]})
    elif lines:
        for text in lines:
            say(safe(text, call))
    else:
        narrate(call, f"task {task} has printed nothing yet")


def _lines(log: Path, start: int = 0) -> Iterator[str]:
    splitter = LineSplitter()
    for chunk in _chunks(log, start):
        yield from splitter.feed(chunk)
    yield from splitter.close()


def _chunks(log: Path, start: int) -> Iterator[bytes]:
    try:
        with log.open("rb") as file:
            file.seek(start)
            while chunk := file.read(CHUNK):
                yield chunk
    except FileNotFoundError:
        return


def _followed(log: Path, start: int) -> Iterator[str]:
    """Every line as it comes, also of a log that is not there yet; ends with Ctrl-C only."""
    splitter = LineSplitter()
    at = start
    while True:
        size = log.stat().st_size if log.exists() else 0
        at = min(at, size)  # a log that was cut begins again
        for chunk in _chunks(log, at):
            at += len(chunk)
            yield from splitter.feed(chunk)
        time.sleep(LOOK_EVERY_S)


def _start_of(workplace: "Workplace", task: str, since: float) -> int:
    """Where the log tells of the first step that was under way at this moment or later."""
    log = workplace.task_log(task)
    if not log.exists() or log.stat().st_mtime < since:
        return log.stat().st_size if log.exists() else 0
    started = {
        f"{fact.subject}/{fact.changes.get('step')}/{fact.changes.get('attempt')}": fact.at
        for _, fact in facts_after(workplace.db)
        if fact.kind == "run" and fact.trigger == "step_started"
    }
    position = last = 0
    for number, text in _headers(log):
        run, _round, step, attempt = (*text.split("/"), "", "", "")[:4]
        last = number
        if started.get(f"{run}/{step}/{attempt}", 0.0) >= since:
            return number
        position = number
    return position or last


def _headers(log: Path) -> Iterator[tuple[int, str]]:
    """The position and the key of each step: `=== A: step 12.1/1/2/1 ===`."""
    position = 0
    with log.open("rb") as file:
        for raw in file:
            if raw.startswith(b"=== ") and b": step " in raw:
                yield position, raw.decode(errors="replace").partition(": step ")[2].rstrip(" =\n")
            position += len(raw)
