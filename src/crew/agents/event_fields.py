"""Reads single fields of a JSON event; a field that is missing or odd reads as empty."""

import re
from collections.abc import Mapping
from typing import Any

Event = Mapping[str, Any]

_SESSION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


def mapping(event: Event, name: str) -> Event:
    value = event.get(name)
    return value if isinstance(value, dict) else {}


def text_of(event: Event, name: str) -> str:
    value = event.get(name)
    return value if isinstance(value, str) else ""


def count_of(event: Event, name: str) -> int:
    value = event.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def number_of(event: Event, name: str) -> float | None:
    value = event.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def session_name(event: Event, name: str) -> str:
    """A session's name from a CLI; empty if it could pass for an option or a path."""
    found = text_of(event, name)
    return found if _SESSION_NAME.fullmatch(found) else ""


def argument_of(values: Event) -> str:
    """The most informative value of a tool call."""
    for name in ("command", "file_path", "filePath", "path", "pattern", "url", "description"):
        if name in values:
            return str(values[name])
    return ", ".join(str(value) for value in values.values() if isinstance(value, str))


def content_text(content: object) -> str:
    """The text in the content of a message: a text, or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(_block_text(block) for block in blocks)


def _block_text(block: object) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        return ""
    kind = text_of(block, "type")
    return text_of(block, "text") if "text" in block else f"[{kind}]" if kind else ""
