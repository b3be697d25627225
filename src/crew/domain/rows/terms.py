"""The terms of a task: settings of its runs that replace the config, fixed when it is made."""

from collections.abc import Mapping
from typing import TypeAlias

Terms: TypeAlias = tuple[tuple[str, str | int | tuple[str, ...]], ...]
"""Names and values in the order of `NAMES`; the config decides a term that is missing."""

NAMES = ("reviewers", "max_rounds", "done_word", "proof")
"""Each is a field of a run. No `reviewers` at all, `()`, means that none is asked."""


def read_terms(values: object) -> Terms:
    """Parse the terms in a task's file; a ValueError names the one that cannot be parsed."""
    if not isinstance(values, Mapping):
        raise ValueError("the terms are not an object")  # noqa: TRY004 - the text is wrong
    if unknown := sorted(values.keys() - set(NAMES)):
        raise ValueError(f"the term {unknown[0]!r} is unknown; there are {', '.join(NAMES)}")
    return tuple((name, _value(name, values[name])) for name in NAMES if name in values)


def _value(name: str, value: object) -> str | int | tuple[str, ...]:
    match name, value:
        case "reviewers", list() | tuple() if all(isinstance(one, str) and one for one in value):
            return tuple(value)
        case "max_rounds", int() if not isinstance(value, bool) and value >= 1:
            return value
        case "done_word", str() if value.strip():
            return _one_line(value)
        case "proof", str() if value.strip():
            return value
        case _:
            raise ValueError(f"the term {name} cannot be {value!r}")


def _one_line(word: str) -> str:
    """A done word stands alone on a line, so that one with a line break would never be found."""
    if word.splitlines() != [word]:
        raise ValueError(f"the term done_word is {word!r}, which is more than one line")
    return word.strip()
