"""Whether the terminal is dark or light, as the person or the terminal says it."""

import os

_LIGHT = {"7", "15"}
"""The numbers of white among the sixteen colours."""


def is_dark_terminal(theme: str) -> bool:
    """`[tui] theme` decides; with `auto` it is COLORFGBG, which some terminals set, else dark."""
    if theme != "auto":
        return theme == "dark"
    return not is_light_background(os.environ.get("COLORFGBG", ""))


def is_light_background(colours: str) -> bool:
    """Whether a text like `0;15` (foreground;background) has a light background."""
    return colours.rpartition(";")[2] in _LIGHT
