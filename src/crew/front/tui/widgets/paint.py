"""How lines are painted: names of styles, their colours in dark and light, and text that fits.

The colours can be told apart without red and green, and no meaning is in a colour alone: each state
has a symbol too.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from crew.front.tui.widgets.safe_text import LONGEST_TEXT, Span, Spans, safe

if TYPE_CHECKING:
    from textual.app import App

__all__ = ["LONGEST_TEXT", "Palette", "Span", "Spans", "fit", "safe", "segments"]

_COLOURS: Mapping[str, tuple[str, str]] = {
    "muted": ("#8a8f98", "#6a6f78"),
    "good": ("#3fbf9b", "#00775a"),
    "busy": ("#56b4e9", "#0062a3"),
    "warn": ("#e69f00", "#965f00"),
    "bad": ("#ff8f6b", "#b34700"),
    "note": ("#cc9ac9", "#8a3f86"),
    "key": ("#f0e442", "#6b5f00"),
    "cursor": ("on #234a6b", "on #b5d5f0"),
    "resting": ("on #20262c", "on #cfd6dc"),
    "added": ("on #12352c", "on #d3f0e5"),
    "removed": ("on #42251a", "on #fbdfd0"),
}
"""Each style in a dark and in a light terminal, after the palette of Okabe and Ito."""

_PLAIN: Mapping[str, str] = {"": "", "bold": "bold", "dim": "dim", "reverse": "reverse"}

_LOG: Mapping[str, str] = {"cyan": "busy", "yellow": "warn", "red": "bad"}
"""The styles of log entries under the names that they have here."""

STATUS_STYLES: Mapping[str, str] = {
    "todo": "",
    "in_progress": "busy",
    "done": "note",
    "merged": "good",
    "closed": "muted",
    "error": "bad",
    "idle": "muted",
    "ready": "busy",
    "working": "busy",
    "stuck": "bad",
}


_WITHOUT_COLOURS: Mapping[str, str] = {"cursor": "reverse", "resting": "bold"}
"""What a background says, where there are no colours."""

MOST_STYLES = 2_000


class Palette:
    """Styles by name for a dark or a light terminal; several names are joined with a blank.

    A name after `=` is a word of Rich itself: the colours that programs chose for their output.
    """

    def __init__(self, *, dark: bool, coloured: bool = True) -> None:
        self._side = 0 if dark else 1
        self._coloured = coloured
        self._made: dict[str, Style] = {}

    def style(self, names: str) -> Style:
        found = self._made.get(names)
        if found is None:
            if len(self._made) >= MOST_STYLES:  # a program may print millions of colours
                self._made.clear()
            found = self._made[names] = Style.parse(" ".join(map(self._one, names.split())))
        return found

    def _one(self, name: str) -> str:
        if name.startswith("="):
            return name[1:]
        name = _LOG.get(name, name)
        if not self._coloured:
            name = _WITHOUT_COLOURS.get(name, name)
        return _PLAIN[name] if name in _PLAIN else _COLOURS[name][self._side]


def paint_without_colours(app: "App[Any]") -> None:
    """Where NO_COLOR is set, send no colour at all; Textual by itself would send greys."""
    from textual.filter import Monochrome, NoColor  # noqa: PLC0415 - the names of keys do without

    if app.no_color:
        filters = app._filters  # noqa: SLF001 - Textual has no other way
        filters[:] = [one for one in filters if not isinstance(one, Monochrome)] + [NoColor()]


def fit(text: str, width: int) -> str:
    """The text in exactly this many cells; what does not fit is replaced by an ellipsis."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, width - 1) + "…"


def segments(spans: Spans, width: int, palette: Palette, *, over: str = "") -> list[Segment]:
    """The spans as one line of exactly this width; `over` is a style on top of all of them."""
    made: list[Segment] = []
    left = width
    above = palette.style(over)
    for text, names in spans:
        if left <= 0:
            break
        length = cell_len(text)
        shown = text if length <= left else fit(text, left)
        left -= min(length, left)
        made.append(Segment(shown, palette.style(names) + above))
    if left > 0:
        made.append(Segment(" " * left, above))
    return made


def width_of(texts: Iterable[str], *, least: int, most: int) -> int:
    """The width of a column for these texts."""
    return min(most, max(least, max(map(cell_len, texts), default=0)))
