"""The types of config values: how each is read, and the message for a wrong value."""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import MISSING, field
from typing import Any, TypeAlias

from crew.config.toml.cli_value import as_it_is, literal, many, one_or_many, yes_or_no
from crew.domain.kernel.templates import template_problem

Reader: TypeAlias = Callable[[Any], Any]
"""Reads one TOML value. Its ValueError describes the expected value."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WEB_ADDRESS = re.compile(r"https?://[^\s/?#]+\S*", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _setting(
    read: Reader,
    default: Any = MISSING,
    *,
    key: str | None = None,
    typed: Callable[[str], Any] = as_it_is,
) -> Any:
    """A dataclass field that is a key of the config. Without a default, a layer must set it.

    `typed` converts text without TOML quotes to a TOML value.
    """
    metadata = {"read": read, "key": key, "typed": typed}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def whole(*, at_least: int = 0, default: Any = MISSING) -> Any:
    def read(value: Any) -> int:
        if type(value) is not int or value < at_least:
            raise ValueError(f"a whole number of at least {at_least}")
        return value

    return _setting(read, default, typed=literal)


def number(*, default: Any = MISSING) -> Any:
    def read(value: Any) -> float:
        if type(value) not in {int, float} or not 0 <= value < float("inf"):
            raise ValueError("a number of at least 0")
        return float(value)

    return _setting(read, default, typed=literal)


def flag(*, default: Any = MISSING) -> Any:
    def read(value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError("true or false")  # noqa: TRY004 - the reader's one kind of error
        return value

    return _setting(read, default, typed=yes_or_no)


def text(*, default: Any = MISSING) -> Any:
    return _setting(read_text, default)


def template(names: Sequence[str], *, default: Any = MISSING) -> Any:
    """A template that may use only these names."""

    def read(value: Any) -> str:
        if problem := template_problem(read_text(value), names):
            raise ValueError(f"a template that crew can fill in, but {problem}")
        return str(value)

    return _setting(read, default)


def choice(*words: str, default: Any = MISSING) -> Any:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError("one of " + ", ".join(f'"{word}"' for word in words))
        return str(value)

    return _setting(read, default)


def texts(*, default: Any = MISSING) -> Any:
    return _setting(read_texts, default, typed=many)


def web_addresses() -> Any:
    """URLs that accept a POST request."""

    def read(value: Any) -> tuple[str, ...]:
        found = read_texts(value)
        if not all(_WEB_ADDRESS.fullmatch(one) for one in found):
            raise ValueError(
                "a list of http:// or https:// addresses; [notify] command reaches everything else"
            )
        return found

    return _setting(read, typed=many)


def network_access() -> Any:
    """Whether programs reach the network, or the hosts that they reach."""

    def read(value: Any) -> bool | tuple[str, ...]:
        if isinstance(value, bool):
            return value
        from crew.domain.kernel.host_list import host_list  # noqa: PLC0415 - few configs have one

        wanted = 'true, false or a list of hosts like ["example.com", "*.example.com:443"]'
        try:
            found = read_texts(value)
        except ValueError:
            raise ValueError(wanted) from None
        try:
            host_list(found)
        except ValueError as problem:
            raise ValueError(f"{wanted}, but {problem}") from None
        return found

    def typed(said: str) -> Any:
        is_list = said.lstrip().startswith("[") or "." in said or "," in said
        return many(said) if is_list else yes_or_no(said)

    return _setting(read, typed=typed)


def names(key: str) -> Any:
    """One name or a list of them."""

    def read(value: Any) -> tuple[str, ...]:
        try:
            return read_texts([value] if isinstance(value, str) else value)
        except ValueError:
            raise ValueError("a name or a list of names") from None

    return _setting(read, key=key, typed=one_or_many)


def words(*, default: Any = MISSING) -> Any:
    """Arguments of a command: a list, or one text that is split as in a shell."""

    def read(value: Any) -> tuple[str, ...]:
        if not isinstance(value, str):
            return read_texts(value)
        try:
            return tuple(shlex.split(value))
        except ValueError:
            raise ValueError("a text with matching quotes, or a list of texts") from None

    def typed(said: str) -> Any:
        return literal(said) if said.startswith("[") else said

    return _setting(read, default, typed=typed)


def text_map(*, default: Any = MISSING) -> Any:
    def read(value: Any) -> dict[str, str]:
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            raise ValueError("a table of texts")
        return dict(value)

    return _setting(read, default, typed=literal)


def answers(*, default: Any = MISSING) -> Any:
    """Values for a program's own config file before its first start. See `first_run`."""

    def read(value: Any) -> tuple[dict[str, Any], ...]:
        if not isinstance(value, list) or not all(_is_answer(one) for one in value):
            raise ValueError(
                'a list like [{ file = ".tool.json", key = ["a", "b"], value = true }]'
            )
        return tuple(value)

    return _setting(read, default, typed=literal)


def _is_answer(one: Any) -> bool:
    if not isinstance(one, dict) or not {"file", "key", "value"} <= one.keys():
        return False
    is_path = isinstance(one["key"], list) and all(isinstance(part, str) for part in one["key"])
    is_known = one.keys() <= {"file", "key", "value", "env"}
    return is_known and is_path and bool(one["key"]) and isinstance(one["file"], str)


def duration(key: str) -> Any:
    """The field holds seconds. Its key in the file has no unit suffix."""
    return _setting(read_duration, key=key, typed=literal)


def read_duration(value: Any) -> float:
    """The seconds of `30s`, `10m`, `2h` or of a plain number of seconds."""
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
