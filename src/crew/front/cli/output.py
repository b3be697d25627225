"""Prints answers to stdout and narration to stderr; text from outside is made safe to show."""

import os
import sys
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, TextIO

from crew.domain.kernel.quotation import quoted
from crew.domain.kernel.text import as_json, json_text, one_line, plain, printable
from crew.front.cli.call import Call

COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36, "bold": 1, "dim": 2}

STATUS_COLOURS = {
    "in_progress": "cyan",
    "working": "cyan",
    "ready": "blue",
    "done": "green",
    "merged": "green",
    "error": "red",
    "stuck": "red",
    "closed": "dim",
    "idle": "dim",
    "open": "cyan",
    "complete": "green",
    "cancelled": "dim",
}

UNKNOWN = "unknown"


def print_json(document: Any) -> None:
    """Print the one document of JSON mode; indented only on a terminal."""
    print(_json_text(document, indent=2 if sys.stdout.isatty() else None))


def print_json_line(document: Any) -> None:
    """Print a document as one line, in one write: Ctrl-C comes before it or after it."""
    sys.stdout.write(f"{_json_text(document, indent=None)}\n")
    sys.stdout.flush()


def print_json_list(head: dict[str, Any], name: str, items: Iterable[Any]) -> None:
    """Print one document whose last field is a list, item by item: it may not fit into memory."""
    gap = "\n    " if sys.stdout.isatty() else ""
    print(_json_text({**head, name: []}, indent=None).removesuffix("]}"), end="")
    for number, item in enumerate(items):
        print(f"{',' if number else ''}{gap or ' ' * bool(number)}", end="")
        print(_json_text(item, indent=None), end="")
    print("]}")


def _json_text(document: Any, *, indent: int | None) -> str:
    text = as_json(document, indent=indent)
    return text if text.isascii() and "\x7f" not in text else json_text(text)


def say(text: str = "") -> None:
    """Print one line of the answer."""
    print(text)


def narrate(call: Call, text: str) -> None:
    """Print one line for the person who watches; it is never part of the answer."""
    if not call.quiet:
        print(text, file=sys.stderr, flush=True)


def safe(text: str, call: Call) -> str:
    """Text of an agent or a task, possibly many lines, made safe for this terminal."""
    if call.has_colour(sys.stdout):
        return printable(text.encode(errors="surrogateescape"))
    return plain(text)


def quotation(text: str) -> str:
    """Text of an agent or a task as a quotation, so that it cannot pass for crew's own output."""
    return quoted(plain(text))


def under(head: str, text: str) -> str:
    """A single line after its head; several lines as a quotation below it."""
    shown = plain(text).strip()
    return f"{head}: {shown}" if len(shown.splitlines()) < 2 else f"{head}:\n{quoted(shown)}"


def line(text: str, *, limit: int = 200) -> str:
    """Text as one safe line; plain ASCII, the usual case, takes a fast path."""
    if text.isascii() and text.isprintable() and len(text) <= limit and "  " not in text:
        return text.strip()
    return one_line(text, limit=limit)


def painted(text: str, colour: str, call: Call, stream: TextIO | None = None) -> str:
    if not text or not colour or not call.has_colour(stream or sys.stdout):
        return text
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m"


def status(word: str, call: Call) -> str:
    return painted(word, STATUS_COLOURS.get(word, ""), call)


def dollars(cost: float | None) -> str:
    return (
        UNKNOWN if cost is None else f"${cost:.2f}" if cost >= 0.1 or not cost else f"${cost:.4f}"
    )


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def ago(moment: str | None) -> str:
    """How long ago an RFC 3339 time was, in one unit."""
    from datetime import UTC, datetime  # noqa: PLC0415 - only to show times

    if moment is None:
        return "-"
    passed = datetime.now(UTC) - datetime.fromisoformat(moment)
    seconds = max(0, int(passed.total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"


def thousands(count: int) -> str:
    if count < 10_000:
        return str(count)
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], call: Call) -> None:
    say("\n".join(table_lines(head, rows, call, width=terminal_width())))


def table_lines(
    head: Sequence[str], rows: Iterable[Sequence[str]], call: Call, *, width: int | None
) -> list[str]:
    """Rows as aligned columns; on a terminal the last column is cut at its edge."""
    *columns, last = ([name, *_cells_of(column)] for name, *column in zip(head, *rows, strict=True))
    padded = zip(*map(_padded, columns), last, strict=True)
    lines = ["  ".join(cells).rstrip() for cells in padded]
    if width is not None:
        lines = [cut(text, width) for text in lines]
    if call.has_colour(sys.stdout):
        kept = zip(*columns, last, strict=True)
        lines = [_coloured(text, row, call) for text, row in zip(lines, kept, strict=True)]
    return [painted(lines[0], "bold", call), *lines[1:]]


def _cells_of(column: Sequence[str]) -> list[str]:
    """The cells of a column made safe; each different value is processed once."""
    known = {cell: line(cell) for cell in set(column)}
    return [known[cell] for cell in column]


def _padded(column: Sequence[str]) -> list[str]:
    if "".join(column).isascii():
        return list(map(str.ljust, column, repeat(max(map(len, column)))))
    width = max(map(text_width, column))
    return [cell + " " * (width - text_width(cell)) for cell in column]


def _coloured(text: str, row: Sequence[str], call: Call) -> str:
    """Colour only the status word of a row."""
    word = next((cell for cell in row[:4] if cell in STATUS_COLOURS), None)
    return text.replace(f"  {word}", f"  {status(word, call)}", 1) if word else text


def terminal_width() -> int | None:
    """The columns of the terminal; None if there is none, or if it does not know its size."""
    return (
        os.get_terminal_size(sys.stdout.fileno()).columns or None if sys.stdout.isatty() else None
    )


def text_width(text: str) -> int:
    return len(text) if text.isascii() else sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    import unicodedata  # noqa: PLC0415 - only for text that is not ASCII

    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    if text_width(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += _cells(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def prepare_streams() -> None:
    """Print UTF-8 in any locale; names that are not UTF-8 are printed as their bytes."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def give_up_stdout() -> None:
    """Discard stdout after its reader has gone, so that the flush at exit does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
