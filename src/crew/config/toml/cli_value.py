"""Converts text from a command line or a variable to the TOML value that it stands for."""

from typing import Any

_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0"})


def as_it_is(said: str) -> str:
    return said


def literal(said: str) -> Any:
    """A number, list or table in TOML syntax. Other text stays text and is refused later."""
    import tomllib  # noqa: PLC0415 - most calls of crew read no typed value

    try:
        read = tomllib.loads(f"value = {said}")
    except tomllib.TOMLDecodeError:
        return said
    return read["value"] if len(read) == 1 else said


def yes_or_no(said: str) -> Any:
    word = said.strip().lower()
    return word in _YES if word in _YES | _NO else said


def many(said: str) -> Any:
    """A TOML list, or words separated by commas."""
    if said.lstrip().startswith("["):
        return literal(said)
    return [word for part in said.split(",") if (word := part.strip())]


def one_or_many(said: str) -> Any:
    return many(said) if "," in said or said.lstrip().startswith("[") else said
