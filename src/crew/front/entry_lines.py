"""Renders entries of an agent's log as lines of text, for terminals of every kind.

The text has no control characters but colours; a style is a name that each front end draws its way.
"""

from collections.abc import Iterator
from typing import Literal

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.log_entry import LogEntry
from crew.domain.kernel.text import one_line, plain, printable

Style = Literal["", "bold", "dim", "cyan", "yellow", "red"]

_LONGEST_ARGUMENT = 160
_MOST_LINES = {"result": 5, "thought": 3}
_LONGEST_LINE = 200  # of a result


@frozen
class EntryLine:
    """One line of a rendered entry."""

    text: str
    style: Style = ""


def entry_lines(entry: LogEntry) -> Iterator[EntryLine]:
    """The lines of an entry. A turn that ended as it should has none."""
    indent = "    " if entry.is_helper else ""
    for line in _lines(entry):
        yield EntryLine(text=f"{indent}{line.text}", style=line.style) if indent else line


def _lines(entry: LogEntry) -> Iterator[EntryLine]:
    match entry.kind:
        case "said" | "text":
            for text in printable(entry.text.encode(errors="surrogateescape")).split("\n"):
                yield EntryLine(text=text)
        case "tool" | "asked":
            is_asked = entry.kind == "asked"
            head = f"? may it use {entry.tool}" if is_asked else f"• {entry.tool}"
            yield EntryLine(
                text=_with_argument(head, entry), style="yellow" if is_asked else "cyan"
            )
        case "result" | "thought":
            yield from _short(entry)
        case "error":
            for text in plain(entry.text).strip().splitlines():
                yield EntryLine(text=f"! {text}", style="red")
        case _:
            yield from _one_line(entry)


def _one_line(entry: LogEntry) -> Iterator[EntryLine]:
    match entry.kind:
        case "step":
            yield EntryLine(text=f"=== {plain(entry.text)} ===", style="bold")
        case "prompt":
            yield EntryLine(text=f"> {one_line(entry.text, limit=_LONGEST_ARGUMENT)}", style="dim")
        case "cost" if _cost(entry):
            yield EntryLine(text=f"— {_cost(entry)}", style="dim")
        case "ended" if entry.is_error:
            yield EntryLine(text=f"! ended: {one_line(entry.text)}", style="red")
        case _:
            pass


def _with_argument(head: str, entry: LogEntry) -> str:
    argument = one_line(entry.text, limit=_LONGEST_ARGUMENT)
    more = "" if argument.endswith("…") or len(_filled(entry.text)) < 2 else " …"
    return f"{one_line(head)}: {argument}{more}" if argument else one_line(head)


def _short(entry: LogEntry) -> Iterator[EntryLine]:
    """The first lines, and how many more there are."""
    lines, most = _filled(entry.text), _MOST_LINES[entry.kind]
    style: Style = "red" if entry.is_error else "dim"
    shown = lines if len(lines) <= most + 1 else lines[:most]
    for text in shown:
        cut = text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 1]}…"
        yield EntryLine(text=f"  {cut}", style=style)
    if len(shown) < len(lines):
        yield EntryLine(text=f"  … {len(lines) - most} more lines", style=style)


def _filled(text: str) -> list[str]:
    return [line for line in plain(text).splitlines() if line.strip()]


def _cost(entry: LogEntry) -> str:
    """The known tokens and dollars; empty if a program that failed reported none."""
    tokens = f"{entry.input_tokens} tokens in, {entry.output_tokens} out"
    known = [tokens] if entry.input_tokens or entry.output_tokens else []
    if entry.cost_usd is not None:
        known.append(f"${entry.cost_usd:.4f}")
    return ", ".join([*known, "in the whole session"] if entry.is_total else known)
