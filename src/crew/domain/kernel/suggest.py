"""Suggestions: the known name that is most like a wrong one."""

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    import difflib  # noqa: PLC0415 - only mistakes pay for it

    choices = {choice.lower(): choice for choice in known}
    near = difflib.get_close_matches(name.lower(), choices, n=1)
    return choices[near[0]] if near else None
