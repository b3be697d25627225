"""Whether the terminal is dark or light, as the person or the terminal says it."""

import os
from pathlib import Path

_LIGHT = {"7", "15"}
"""The numbers of white among the sixteen colours."""


def is_dark_terminal(root: Path) -> bool:
    """`[tui] theme` decides; `auto` asks COLORFGBG, which some terminals set, and is dark without."""
    return not is_light_background(os.environ.get("COLORFGBG", ""))


def is_light_background(colours: str) -> bool:
    """Whether a text like `0;15` (foreground;background) has a light background."""
    return colours.rpartition(";")[2] in _LIGHT
