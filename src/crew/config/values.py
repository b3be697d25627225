"""The kinds of value a config key may have: how each is read, and what a wrong one should be."""

import re
import shlex
from collections.abc import Callable
from dataclasses import MISSING, field
from typing import Any, TypeAlias

Reader: TypeAlias = Callable[[Any], Any]
"""Reads one TOML value; ValueError says in a few words what it should be."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _setting(read: Reader, default: Any = MISSING, *, key: str | None = None) -> Any:
    """A dataclass field that is a key of the config; without a default some layer must set it."""
    metadata = {"read": read, "key": key}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def whole(*, at_least: int = 0, default: Any = MISSING) -> Any:
    def read(value: Any) -> int:
        if type(value) is not int or value < at_least:
            raise ValueError(f"a whole number from {at_least} on")
        return value

    return _setting(read, default)


def number(*, default: Any = MISSING) -> Any:
    def read(value: Any) -> float:
        if type(value) not in {int, float} or not 0 <= value < float("inf"):
            raise ValueError("a number from 0 on")
        return float(value)

    return _setting(read, default)


def flag(*, default: Any = MISSING) -> Any:
    def read(value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError("true or false")  # noqa: TRY004 - the reader's one kind of error
        return value

    return _setting(read, default)


def text(*, default: Any = MISSING) -> Any:
    return _setting(read_text, default)


def choice(*words: str, default: Any = MISSING) -> Any:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError("one of " + ", ".join(f'"{word}"' for word in words))
        return str(value)

    return _setting(read, default)


def texts(*, default: Any = MISSING) -> Any:
    return _setting(read_texts, default)


def names(key: str) -> Any:
    """One name or a list of them."""

    def read(value: Any) -> tuple[str, ...]:
        try:
            return read_texts([value] if isinstance(value, str) else value)
        except ValueError:
            raise ValueError("a name or a list of names") from None

    return _setting(read, key=key)


def words(*, default: Any = MISSING) -> Any:
    """Arguments of a command: a list, or one text that is split as a shell would."""

    def read(value: Any) -> tuple[str, ...]:
        if not isinstance(value, str):
            return read_texts(value)
        try:
            return tuple(shlex.split(value))
        except ValueError:
            raise ValueError("a text with matching quotes, or a list of texts") from None

    return _setting(read, default)


def text_map(*, default: Any = MISSING) -> Any:
    def read(value: Any) -> dict[str, str]:
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            raise ValueError("a table of texts")
        return dict(value)

    return _setting(read, default)


def duration(key: str) -> Any:
    """The field holds seconds; the key in the file goes without the unit."""
    return _setting(read_duration, key=key)


def read_duration(value: Any) -> float:
    """Seconds of `30s`, `10m`, `2h` or a bare number of seconds."""
    if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        return float(match[1]) * _SECONDS[match[2]]
    if type(value) in {int, float} and 0 <= value < float("inf"):
        return float(value)
    raise ValueError('a duration like "30s", "10m" or "2h"')


def read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text")  # noqa: TRY004 - the reader's one kind of error
    return value


def read_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError("a list of texts")
    return tuple(value)
