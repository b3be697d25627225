"""The colours of code in a diff, by pygments: a few lines at a time, and only what is in sight.

An agent wrote the lines, so only short lines of well-known languages are read: some of the others
can be written so that reading them takes forever.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from crew.front.tui.diff.diff_text import DiffLine
from crew.front.tui.widgets.safe_text import Span, Spans, safe

LONGEST_LINE = 300
LINES = 100
"""How many lines are read together; a text of several lines that begins above is not known."""

_LANGUAGES = frozenset(
    (
        *("bash", "c", "c++", "c#", "css", "docker", "go", "haskell", "html", "ini", "java"),
        *("javascript", "json", "jsx", "kotlin", "lua", "makefile", "markdown", "php", "python"),
        *("ruby", "rust", "scala", "sql", "swift", "toml", "tsx", "typescript", "xml", "yaml"),
    )
)
_STYLES = (
    ("Token.Comment", "muted"),
    ("Token.Keyword", "busy"),
    ("Token.Literal.String", "good"),
    ("Token.Literal", "note"),
    ("Token.Name.Function", "bold"),
    ("Token.Name.Class", "bold"),
    ("Token.Name.Decorator", "warn"),
    ("Token.Name.Tag", "busy"),
    ("Token.Name.Attribute", "note"),
)


@lru_cache(maxsize=64)
def lexer_of(path: str) -> Any | None:
    """The reader for the language of a file; None for a language without colours."""
    # Slow to load, and without types.
    from pygments.lexers import (  # type: ignore[import-untyped] # noqa: PLC0415
        find_lexer_class_for_filename,
    )

    name = path.rpartition("/")[2]
    found = find_lexer_class_for_filename(name) if name.isprintable() and len(name) < 200 else None
    if found is None or found.name.casefold() not in _LANGUAGES:
        return None
    return found(ensurenl=False, stripnl=False)


class CodeColours:
    """Colours of lines, kept for those that were in sight."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], list[Spans]] = {}

    def spans(self, path: str, hunk: int, lines: Sequence[DiffLine], at: int) -> Spans:
        """The line at this place of a hunk."""
        lexer = lexer_of(path)
        if lexer is None:
            return ((shown_code(lines[at].text), ""),)
        part = at // LINES
        known = self._known.get((path, hunk, part))
        if known is None:
            together = lines[part * LINES : (part + 1) * LINES]
            known = self._known[path, hunk, part] = _coloured(lexer, together)
        return known[at - part * LINES]


def _coloured(lexer: Any, lines: Sequence[DiffLine]) -> list[Spans]:
    """Both texts are read by themselves: the removed lines, and all others."""
    made: list[Spans] = [((shown_code(line.text), ""),) for line in lines]
    for is_old in (True, False):
        chosen = [
            number
            for number, line in enumerate(lines)
            if (line.kind == "removed") == is_old and _is_read(line)
        ]
        text = "\n".join(lines[number].text.removesuffix("\r") for number in chosen)
        for number, spans in zip(chosen, _by_line(lexer, text), strict=False):
            ending = lines[number].text.endswith("\r")
            made[number] = (*spans, ("␍", "muted")) if ending else spans
    return made


def _is_read(line: DiffLine) -> bool:
    """Whether pygments reads the line; it would take some characters for an end of the line."""
    is_odd = "\r" in line.text[:-1] or "\ufeff" in line.text
    return line.kind != "note" and len(line.text) <= LONGEST_LINE and not is_odd


def _by_line(lexer: Any, text: str) -> list[Spans]:
    found: list[list[Span]] = [[]]
    for token, value in lexer.get_tokens(text):
        style = _style(str(token))
        for number, piece in enumerate(value.split("\n")):
            if number:
                found.append([])
            if piece:
                found[-1].append((safe(piece), style))
    return [tuple(spans) for spans in found]


@lru_cache(maxsize=512)
def _style(token: str) -> str:
    return next((style for start, style in _STYLES if token.startswith(start)), "")


def shown_code(text: str) -> str:
    """A line without colours; the end of a line of Windows is shown, since it may be the change."""
    return f"{safe(text[:-1])}␍" if text.endswith("\r") else safe(text)
