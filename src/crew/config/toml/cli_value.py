"""Converts text from a command line or a variable to the TOML value that it stands for."""

from typing import Any

_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0"})


def as_it_is(text: str) -> str:
    return text


def literal(text: str) -> Any:
    """A number, list or table in TOML syntax. Other text stays text and is refused later."""
    import tomllib  # noqa: PLC0415 - most calls of crew read no typed value

    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return read["value"] if len(read) == 1 else text


def yes_or_no(text: str) -> Any:
    word = text.strip().lower()
    return word in _YES if word in _YES | _NO else text


def many(text: str) -> Any:
    """A TOML list, or words separated by commas."""
    if text.lstrip().startswith("["):
        return literal(text)
    return [word for part in text.split(",") if (word := part.strip())]


def one_or_many(text: str) -> Any:
    return many(text) if "," in text or text.lstrip().startswith("[") else text
