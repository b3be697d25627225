"""`crew peek` and `crew logs`: print what an agent did, made short and safe to show."""

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crew.domain.kernel.log_entry import LogEntry
from crew.domain.kernel.names import is_agent_name, task_id, terminal_name
from crew.domain.kernel.text import plain
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, painted, print_json_line, print_json_list, safe
from crew.front.cli.params import DURATION, subject_argument
from crew.front.cli.terminal.open_terminals import SOCKET
from crew.front.entry_lines import EntryLine, entry_lines
from crew.runner.views import read_log
from crew.runner.views.log_end import size_of, steps_from_end

if TYPE_CHECKING:
    from crew.workplace import Workplace

raw_option = click.option(
    "--raw", is_flag=True, help="Show the lines that the agent's program printed, unchanged."
)


@command("peek", example="crew peek A\ncrew peek 12 -n 100")
@subject_argument()
@click.option("-n", "--lines", "count", type=click.IntRange(1), default=30, help="Number of lines.")
@raw_option
@pass_call
def peek(call: Call, subject: str, count: int, *, raw: bool) -> None:
    """Show the last lines of what an agent did.

    For a task in a terminal, it prints the present screen. With --json, it prints the last entries.
    """
    workplace = call.workplace()
    task = _task(workplace, subject)
    log = workplace.task_log(task)
    if (screen := _screen(workplace, task, count)) is not None:
        _print_lines(call, task, screen)
    elif raw:
        _print_raw(call, task, read_log.last_chunks(log, count))
    elif call.json:
        _print_json(task, "entries", map(_document, read_log.last_items(log, count, list)))
    else:
        _print_entry_lines(call, task, read_log.last_items(log, count, _all_lines))


@command("logs", example="crew logs A -f\ncrew logs 12 --since 10m\ncrew logs 12 --raw | less")
@subject_argument()
@click.option("-f", "--follow", is_flag=True, help="Print new lines until Ctrl-C.")
@click.option(
    "--since", type=DURATION, metavar="D", help="Only the steps of the last 30s, 10m, 2h."
)
@raw_option
@pass_call
def logs(call: Call, subject: str, *, follow: bool, since: float | None, raw: bool) -> None:
    """Show what an agent said and did.

    Prints its words, tools, short results, errors and costs, in the same form for every program.
    With --json, each of these is one entry.
    """
    workplace = call.workplace()
    task = _task(workplace, subject)
    log = workplace.task_log(task)
    end = size_of(log)
    start = 0 if since is None else _start_of(workplace, task, time.time() - since, end=end)
    if follow:
        _follow(call, task, log, start, raw=raw)
        return
    chunks = read_log.chunks_between(log, start, end)
    if raw:
        _print_raw(call, task, chunks)
        return
    entries = read_log.entries_of_chunks(chunks)
    if call.json:
        _print_json(task, "entries", _documents(entries))
    elif not _print_entries(call, entries):
        narrate(call, f"task {task} has printed nothing yet")


def _task(workplace: "Workplace", subject: str) -> str:
    """The task that an id or an agent's name means; a number with a log needs no other file."""
    if not is_agent_name(subject) and workplace.task_log(task_id(subject)).exists():
        return task_id(subject)
    from crew.front.cli.resolve_ids import task_of  # noqa: PLC0415 - loads tasks and configuration

    return task_of(workplace, subject)


def _follow(call: Call, task: str, log: Path, start: int, *, raw: bool) -> None:
    if raw:
        _print_raw(call, task, read_log.followed(log, start), is_followed=True)
        return
    for entry in read_log.followed_entries(log, start):
        if call.json:
            for document in _documents((entry,)):
                print_json_line({"task": task, **document})
            continue
        _print_entries(call, (entry,))
        sys.stdout.flush()


def _screen(workplace: "Workplace", task: str, count: int) -> list[str] | None:
    """The lines on the task's terminal, if it has one."""
    if not (workplace.folder / SOCKET).exists():
        return None
    # Slow to import, and only for tasks at a terminal.
    from crew.runner.by_hand.task_access import has_terminal, shown_lines  # noqa: PLC0415

    name = terminal_name(task)
    if not has_terminal(workplace, name):
        return None
    return shown_lines(workplace, name, count=count)


def _print_lines(call: Call, task: str, lines: Iterable[str]) -> None:
    if call.json:
        _print_json(task, "lines", map(plain, lines))
    else:
        _print_entry_lines(call, task, (EntryLine(text=line) for line in lines))


def _print_json(task: str, name: str, items: Iterable[Any]) -> None:
    print_json_list({"task": task}, name, items)


def _print_entry_lines(call: Call, task: str, lines: Iterable[EntryLine]) -> None:
    is_empty = True
    for line in lines:
        is_empty = False
        _print_line(call, line)
    if is_empty:
        narrate(call, f"task {task} has printed nothing yet")


def _print_entries(call: Call, entries: Iterable[LogEntry]) -> int:
    """Print the entries, plain text at once; returns how many pieces were printed."""
    count = 0
    for entry in entries:
        if entry.kind == "text" and not entry.is_helper:
            lines: Iterable[EntryLine] = (EntryLine(text=entry.text),)
        else:
            lines = entry_lines(entry)
        for line in lines:
            _print_line(call, line)
            count += 1
    return count


def _print_line(call: Call, line: EntryLine) -> None:
    print(painted(safe(line.text, call), line.style, call))


def _print_raw(
    call: Call, task: str, chunks: Iterable[bytes], *, is_followed: bool = False
) -> None:
    """The bytes as they are; on a terminal and in JSON the lines, made safe."""
    if is_followed and call.json:
        for line in read_log.lines_of(chunks):
            print_json_line({"task": task, "line": plain(line)})
    elif call.json or sys.stdout.isatty():
        _print_lines(call, task, read_log.lines_of(chunks))
    else:
        sys.stdout.flush()
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
            if is_followed:
                sys.stdout.buffer.flush()


def _all_lines(entries: Iterable[LogEntry]) -> list[EntryLine]:
    return [line for entry in entries for line in entry_lines(entry)]


def _documents(entries: Iterable[LogEntry]) -> Iterator[dict[str, Any]]:
    """One document for each entry, and for each line of plain text."""
    for entry in entries:
        if entry.kind != "text" or "\n" not in entry.text:
            yield _document(entry)
            continue
        many = entry.text.split("\n")
        for text in map(plain, many) if "\r" in entry.text else plain(entry.text).split("\n"):
            yield {"kind": "text", "text": text} if text else {"kind": "text"}


def _document(entry: LogEntry) -> dict[str, Any]:
    """An entry without its empty fields, safe to show."""
    found = {name: getattr(entry, name) for name in LogEntry.__dataclass_fields__}
    filled = {name: value for name, value in found.items() if value not in ("", False, 0, None)}
    return {
        name: plain(value) if isinstance(value, str) else value for name, value in filled.items()
    }


def _start_of(workplace: "Workplace", task: str, since: float, *, end: int) -> int:
    """The position of the first step since this time, else of the last step.

    The end of the log if it has not been written since.
    """
    from crew.store.fact_log import facts_after  # noqa: PLC0415 - only with --since

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
