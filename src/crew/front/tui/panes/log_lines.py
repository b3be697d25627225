"""The lines of a log for a width: rendered entries, wrapped, with the matches of a search."""

from collections.abc import Iterable, Iterator

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.log_entry import LogEntry
from crew.front.entry_lines import entry_lines
from crew.front.tui.widgets.ansi_spans import ansi_spans
from crew.front.tui.widgets.line_list import ShownLine
from crew.front.tui.widgets.safe_text import Span, Spans
from crew.front.tui.widgets.wrap import wrapped


@frozen
class LogRow:
    """A line of the screen: a part of the rendered line with this number."""

    spans: Spans
    text: str


def log_rows(entries: Iterable[LogEntry], width: int) -> Iterator[LogRow]:
    """The entries as lines that fit, as `crew logs` prints them."""
    for entry in entries:
        for line in entry_lines(entry):
            spans = [
                (text, f"{line.style} {style}".strip()) for text, style in ansi_spans(line.text)
            ]
            for part in wrapped(spans, width):
                yield LogRow(spans=part, text="".join(text for text, _ in part))


def found_in(rows: list[LogRow], word: str) -> list[int]:
    """The numbers of the rows that contain the word, in any case of its letters."""
    wanted = word.casefold()
    return [n for n, row in enumerate(rows) if wanted in row.text.casefold()] if wanted else []


def marked_line(row: LogRow, word: str, *, is_current: bool) -> ShownLine:
    """The row with all matches of the word marked; those of the current row stand out."""
    wanted, text = word.casefold(), row.text.casefold()
    # A letter that becomes two when its case is folded would move the marks.
    if not wanted or wanted not in text or len(text) != len(row.text):
        return ShownLine(spans=row.spans)
    over = "key reverse bold" if is_current else "reverse"
    return ShownLine(spans=tuple(_marked(row.spans, _places(text, wanted), over)))


def _places(text: str, word: str) -> list[tuple[int, int]]:
    places, at = [], text.find(word)
    while at >= 0:
        places.append((at, at + len(word)))
        at = text.find(word, at + len(word))
    return places


def _marked(spans: Spans, places: list[tuple[int, int]], over: str) -> Iterator[Span]:
    start = 0
    for text, style in spans:
        at = 0
        for first, last in places:
            left, right = max(first - start, at), min(last - start, len(text))
            if left < right:
                yield text[at:left], style
                yield text[left:right], f"{style} {over}".strip()
                at = right
        yield text[at:], style
        start += len(text)
