"""Text from outside, made safe for a line; it needs no library of terminals."""

from collections.abc import Sequence
from typing import TypeAlias

from crew.domain.kernel.text import plain

Span: TypeAlias = tuple[str, str]
"""A piece of text and the name of its style; an empty name is ordinary text."""

Spans: TypeAlias = Sequence[Span]

LONGEST_TEXT = 2_000
"""The most characters of a text that a line can show; more is not even read."""


def safe(text: str) -> str:
    """Text from outside as one piece of a line: no control character, no line break, not long."""
    if len(text) > LONGEST_TEXT:
        text = text[:LONGEST_TEXT] + "…"
    if text.isascii() and text.isprintable():
        return text
    return plain(text).replace("\n", " ").replace("\t", "    ")
