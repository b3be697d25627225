"""Wraps spans into lines of a width in cells, between words where that is possible."""

from collections.abc import Iterator

from rich.cells import cell_len, get_character_cell_size

from crew.front.tui.widgets.safe_text import Span, Spans


def wrapped(spans: Spans, width: int) -> list[tuple[Span, ...]]:
    """The spans as lines that fit; there is always one line."""
    text = "".join(text for text, _ in spans)
    if len(text) * 2 <= width or cell_len(text) <= width:
        return [tuple(spans)]
    ends = list(_ends(text, max(2, width)))
    return list(_cut(spans, ends))


def _ends(text: str, width: int) -> Iterator[int]:
    """Where each line ends: behind its last blank, or in the middle of a word without one."""
    start = used = 0
    blank = -1
    for at, letter in enumerate(text):
        size = 1 if letter.isascii() else get_character_cell_size(letter)
        if used + size > width:
            end = blank + 1 if blank > start else at
            yield end
            start, blank = end, -1
            used = cell_len(text[start:at])
        if letter == " ":
            blank = at
        used += size
    yield len(text)


def _cut(spans: Spans, ends: list[int]) -> Iterator[tuple[Span, ...]]:
    line: list[Span] = []
    at = 0
    left = list(reversed(ends))
    for text, style in spans:
        while left and at + len(text) > left[-1]:
            room = left.pop() - at
            yield (*line, (text[:room], style)) if room else tuple(line)
            line, text, at = [], text[room:], at + room  # noqa: PLW2901 - the rest of the span
        line.append((text, style))
        at += len(text)
    yield tuple(line)
