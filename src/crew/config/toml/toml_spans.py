"""Locates keys, values and headers in the text of a TOML file, and formats values.

The text must be valid TOML: callers parse it first.
"""

import json
import re
import tomllib
from typing import Any

from crew.domain.kernel.frozen import frozen

KeyPath = tuple[str, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_PART = re.compile(r'"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|[^\s."\'=\[\]]+')
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.DOTALL
)
_SCALAR = re.compile(r"[^,\]}#\n]*[^,\]}#\s]")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@frozen
class TomlSpan:
    """A key with the span of its value, or a table header with the span of its name.

    `written` is the key as the file spells it, relative to its table.
    """

    path: KeyPath
    written: KeyPath
    start: int
    end: int
    is_header: bool = False
    is_inline: bool = False


def spans(text: str) -> list[TomlSpan]:
    """Every key and header in order. The members of an inline table follow their table."""
    found: list[TomlSpan] = []
    table: KeyPath = ()
    at = _after(_BLANK, text, 1 if text.startswith("\ufeff") else 0)
    while at < len(text):
        if text[at] == "[":
            start = at + (2 if text.startswith("[[", at) else 1)
            table, at = _key(text, start)
            found.append(TomlSpan(path=table, written=table, start=start, end=at, is_header=True))
            at = text.index("]", at) + (2 if text.startswith("[[", start - 2) else 1)
        else:
            at = _entry(text, at, table, found)
        at = _after(_BLANK, text, at)
    return found


def line_of(text: str, path: KeyPath) -> int | None:
    """The line that sets `path`, or the header line of that table."""
    for place in spans(text):
        if place.path == path or (place.is_header and place.path[: len(path)] == path):
            return text.count("\n", 0, place.start) + 1
    return None


def key_parts(dotted: str) -> KeyPath:
    """The parts of `a.b` and of `a."b.c"`."""
    return tuple(_unquote(part) for part in _PART.findall(dotted))


def written_key(path: KeyPath) -> str:
    return ".".join(part if _BARE.fullmatch(part) else _written_text(part) for part in path)


def written_value(value: Any) -> str:
    """A value in TOML syntax, on one line."""
    if isinstance(value, dict):
        members = [f"{written_key((key,))} = {written_value(one)}" for key, one in value.items()]
        return f"{{ {', '.join(members)} }}" if members else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(written_value, value))}]"
    return _written_text(value) if isinstance(value, str) else json.dumps(value)


def _written_text(text: str) -> str:
    """JSON syntax is valid TOML, except for one character that TOML escapes."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _entry(
    text: str, at: int, table: KeyPath, found: list[TomlSpan], *, is_inline: bool = False
) -> int:
    """Record the `key = value` that begins here and return its end."""
    written, at = _key(text, at)
    start = _after(_SPACE, text, at + 1)
    path = (*table, *written)
    here = len(found)
    end = _value(text, start, path, found)
    place = TomlSpan(path=path, written=written, start=start, end=end, is_inline=is_inline)
    found.insert(here, place)
    return end


def _key(text: str, at: int) -> tuple[KeyPath, int]:
    """The key that begins here, and the position of the `=` or `]` after it."""
    parts: list[str] = []
    while True:
        at = _after(_SPACE, text, at)
        part = _PART.match(text, at)
        assert part is not None, "expected a key"
        parts.append(_unquote(part[0]))
        at = _after(_SPACE, text, part.end())
        if text[at] != ".":
            return tuple(parts), at
        at += 1


def _value(text: str, at: int, path: KeyPath, found: list[TomlSpan]) -> int:
    if string := _STRING.match(text, at):
        return string.end()
    if text[at] not in "[{":
        return _after(_SCALAR, text, at)
    closing = "]" if text[at] == "[" else "}"
    at = _after(_BLANK, text, at + 1)
    while text[at] != closing:
        if closing == "}":
            at = _entry(text, at, path, found, is_inline=True)
        else:
            at = _value(text, at, path, [])
        at = _after(_BLANK, text, at)
        at = _after(_BLANK, text, at + 1) if text[at] == "," else at
    return at + 1


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _unquote(part: str) -> str:
    is_quoted = part.startswith(("'", '"'))
    return str(tomllib.loads(f"part = {part}")["part"]) if is_quoted else part
