"""`crew peek` and `crew logs`: print an agent's output, made safe to show."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crew.domain.kernel.names import terminal_name
from crew.domain.kernel.text import LineSplitter, plain
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json_line, print_json_list, safe, say
from crew.front.cli.params import DURATION, subject_argument
from crew.front.cli.resolve_ids import task_of
from crew.runner.by_hand.task_access import has_terminal, shown_lines
from crew.runner.views.log_end import BLOCK, size_of, start_of_last, steps_from_end
from crew.store.fact_log import facts_after

if TYPE_CHECKING:
    from crew.workplace import Workplace

LOOK_EVERY_S = 0.2


@command("peek", example="crew peek A\ncrew peek 12 -n 100")
@subject_argument()
@click.option("-n", "--lines", "count", type=click.IntRange(1), default=30, help="Number of lines.")
@pass_call
def peek(call: Call, subject: str, count: int) -> None:
    """Show the last lines an agent printed.

    For a task in a terminal, the present screen.
    """
    workplace = call.workplace()
    task = task_of(workplace, subject)
    if has_terminal(workplace, terminal_name(task)):
        _print(call, task, shown_lines(workplace, terminal_name(task), count=count))
        return
    _print(call, task, _last_lines(workplace.task_log(task), count))


@command("logs", example="crew logs A -f\ncrew logs 12 --since 10m")
@subject_argument()
@click.option("-f", "--follow", is_flag=True, help="Print new lines until Ctrl-C.")
@click.option(
    "--since", type=DURATION, metavar="D", help="Only the steps of the last 30s, 10m, 2h."
)
@pass_call
def logs(call: Call, subject: str, *, follow: bool, since: float | None) -> None:
    """Show what an agent printed."""
    workplace = call.workplace()
    task = task_of(workplace, subject)
    log = workplace.task_log(task)
    end = size_of(log)
    start = 0 if since is None else _start_of(workplace, task, time.time() - since, end=end)
    if not follow:
        _print(call, task, _lines(log, start, end=end))
        return
    for text in _followed(log, start):
        if call.json:
            print_json_line({"task": task, "line": plain(text)})
        else:
            print(safe(text, call), flush=True)


def _print(call: Call, task: str, lines: Iterable[str]) -> None:
    if call.json:
        print_json_list({"task": task}, "lines", map(plain, lines))
        return
    is_empty = True
    for text in lines:
        is_empty = False
        say(safe(text, call))
    if is_empty:
        narrate(call, f"task {task} has printed nothing yet")


def _last_lines(log: Path, count: int) -> Iterator[str]:
    """The last lines up to the present end; later output is left to the next call."""
    end = size_of(log)
    return _lines(log, start_of_last(log, count, end=end) if end else 0, end=end)


def _lines(log: Path, start: int, *, end: int) -> Iterator[str]:
    splitter = LineSplitter()
    for chunk in _chunks(log, start, end=end):
        yield from splitter.feed(chunk)
    yield from splitter.close()


def _chunks(log: Path, start: int, *, end: int) -> Iterator[bytes]:
    if start >= end:
        return
    with log.open("rb") as file:
        file.seek(start)
        while start < end and (chunk := file.read(min(BLOCK, end - start))):
            start += len(chunk)
            yield chunk


def _followed(log: Path, start: int) -> Iterator[str]:
    """Every line as it is written, even if the log does not exist yet; until Ctrl-C."""
    splitter = LineSplitter()
    at = start
    while True:
        size = size_of(log)
        at = min(at, size)  # a log that was truncated is read from its start
        for chunk in _chunks(log, at, end=size):
            at += len(chunk)
            yield from splitter.feed(chunk)
        time.sleep(LOOK_EVERY_S)


def _start_of(workplace: "Workplace", task: str, since: float, *, end: int) -> int:
    """The position of the first step since this time, else of the last step.

    The end of the log if it has not been written since.
    """
    log = workplace.task_log(task)
    if not end or log.stat().st_mtime < since:
        return end
    started = {
        f"{fact.subject}/{fact.changes.get('step')}/{fact.changes.get('attempt')}"
        for _, fact in facts_after(workplace.db, since=since)
        if fact.kind == "run" and fact.trigger == "step_started"
    }
    place = 0
    for position, key in steps_from_end(log, end=end):
        run, _round, step, attempt = (*key.split("/"), "", "", "")[:4]
        is_older = f"{run}/{step}/{attempt}" not in started
        place = place if is_older and place else position
        if is_older:
            break
    return place
