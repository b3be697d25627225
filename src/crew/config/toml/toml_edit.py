"""Sets or removes a key in the text of a config file. Every other byte stays unchanged."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crew.config.toml.toml_spans import KeyPath, TomlSpan, spans, written_key, written_value
from crew.domain.kernel.errors import UsageError
from crew.system.atomic_files import rewrite_file
from crew.system.crash_points import effect
from crew.system.private_files import FILE_MODE

_BLANK_LINE = re.compile(r"(?:(?<=\n)|\A)\r?\n\Z")


def with_value(text: str, path: KeyPath, value: Any) -> str:
    """The text with this key set. Raises if the layout of the file does not allow it."""
    changed = _splice(text, path, written_value(value))
    if _values(changed) != _with(tomllib.loads(text.removeprefix("\ufeff")), path, value):
        raise UsageError(
            f"{'.'.join(path)} cannot be set in place: the layout of the file would have to change",
            hint=f"write it by hand: {written_key(path)} = {written_value(value)}",
        )
    return changed


def without_key(text: str, path: KeyPath) -> str:
    """The text without the lines of this key or table, and of all below it.

    Of the blank lines above a header, one goes with it. Raises if the layout of the file does not
    allow it.
    """
    changed = text
    for place in reversed(spans(text)):
        if place.path[: len(path)] == path and not place.is_inline:
            changed = _without_lines(changed, place)
    values = tomllib.loads(text.removeprefix("\ufeff"))
    if _without(_values(changed) or {}, path) != _without(values, path) or _has(changed, path):
        raise UsageError(
            f"{written_key(path)} cannot be removed in place: the layout of the file would have to "
            "change",
            hint="remove it by hand",
        )
    return changed


@effect("config.make_folder")
def make_config_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)


@effect("config.write")
def write_config(file: Path, text: str) -> None:
    rewrite_file(file, text.encode(), mode=FILE_MODE if file.parent.name == ".crew" else None)


def _splice(text: str, path: KeyPath, written: str) -> str:
    known = spans(text)
    if same := next((one for one in known if one.path == path and not one.is_header), None):
        return text[: same.start] + written + text[same.end :]
    siblings = [one for one in known if one.path[:-1] == path[:-1] and not one.is_header]
    if siblings and siblings[-1].is_inline:
        return _insert(text, siblings[-1].end, f", {written_key(path[-1:])} = {written}")
    if siblings:
        key = written_key((*siblings[-1].written[:-1], path[-1]))
        return _below(text, siblings[-1], f"{key} = {written}")
    return _in_table(text, known, path, written)


def _in_table(text: str, known: list[TomlSpan], path: KeyPath, written: str) -> str:
    """Add the first key of a table that is empty or missing."""
    line = f"{written_key(path[-1:])} = {written}"
    table = next((one for one in known if one.path == path[:-1]), None)
    if table is not None and table.is_header:
        return _below(text, table, line)
    if table is not None:
        return text[: table.start] + f"{{ {line} }}" + text[table.end :]
    newline = _newline(text)
    gap = "" if not text.strip("\ufeff") else newline if text.endswith("\n") else newline * 2
    return f"{text}{gap}[{written_key(path[:-1])}]{newline}{line}{newline}"


def _below(text: str, place: TomlSpan, line: str) -> str:
    """Insert a line below the one on which this span ends."""
    newline = _newline(text)
    begin = text.rfind("\n", 0, place.start) + 1
    before = text[begin : place.start].lstrip("\ufeff")
    indented = before[: len(before) - len(before.lstrip())] + line + newline
    end = text.find("\n", place.end)
    return text + newline + indented if end < 0 else _insert(text, end + 1, indented)


def _without_lines(text: str, place: TomlSpan) -> str:
    begin = text.rfind("\n", 0, place.start) + 1
    end = text.find("\n", place.end) + 1
    before = text[:begin]
    if place.is_header:
        before = _BLANK_LINE.sub("", before)
    return before + (text[end:] if end else "")


def _insert(text: str, at: int, more: str) -> str:
    return text[:at] + more + text[at:]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _values(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        return None


def _with(values: Mapping[str, Any], path: KeyPath, value: Any) -> dict[str, Any]:
    below = values.get(path[0], {})
    if len(path) == 1 or not isinstance(below, dict):
        return {**values, path[0]: value}
    return {**values, path[0]: _with(below, path[1:], value)}


def _without(values: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
    """The values without this one, and without the tables around it that are empty then."""
    below = values.get(path[0])
    left = _without(below, path[1:]) if len(path) > 1 and isinstance(below, dict) else {}
    others = {name: value for name, value in values.items() if name != path[0]}
    return {**others, path[0]: left} if left else others


def _has(text: str, path: KeyPath) -> bool:
    return any(place.path[: len(path)] == path for place in spans(text))
