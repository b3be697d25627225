"""Finds the lines that match what a person typed: first those that begin with it."""

from collections.abc import Sequence

from crew.front.tui.dialogs.choice import Choice

_NONE = 9
"""The rate of what does not match."""


def best_matches(text: str, choices: Sequence[Choice]) -> list[Choice]:
    """The choices that match, the best one first; all of them in their order without a text."""
    wanted = text.casefold().strip()
    if not wanted:
        return list(choices)
    rated = sorted((*_rate(wanted, choice), number) for number, choice in enumerate(choices))
    return [choices[number] for rate, _length, number in rated if rate < _NONE]


def _rate(wanted: str, choice: Choice) -> tuple[int, int]:
    """How well it matches, and then its length: a short name is more likely meant."""
    rate = _quality(wanted, choice)
    return rate, len(choice.title) if rate <= 1 else 0


def _quality(wanted: str, choice: Choice) -> int:
    """0 is best, `_NONE` is not at all."""
    title, about = choice.title.casefold(), choice.about.casefold()
    if title == wanted or (choice.key and choice.key.casefold() == wanted):
        return 0
    if title.startswith(wanted):
        return 1
    if any(word.startswith(wanted) for word in title.split()):
        return 2
    if wanted in title:
        return 3
    if all(word in f"{title} {about}" for word in wanted.split()):
        return 4
    return 5 if _is_spread(wanted, title) else _NONE


def _is_spread(wanted: str, title: str) -> bool:
    """Whether the letters occur in the title in this order, with others between them."""
    letters = iter(title)
    return all(letter in letters for letter in wanted if letter != " ")
