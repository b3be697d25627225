"""A text of several lines below a list: it wraps, scrolls, and can follow its end."""

from collections.abc import Callable, Iterator
from typing import ClassVar, TypeAlias

from rich.cells import cell_len, chop_cells

from crew.domain.kernel.text import plain
from crew.front.tui.widgets.line_list import LineList, ShownLine
from crew.front.tui.widgets.safe_text import Span

LinesFor: TypeAlias = Callable[[int], list[ShownLine]]
"""Makes the lines of a text for a width."""

LONGEST = 100_000
"""The most characters of one text that are wrapped."""


class Sheet(LineList, can_focus=False):
    """Lines without a cursor; the list above scrolls it."""

    DEFAULT_CSS = "Sheet { border-top: solid $panel; }"
    has_cursor: ClassVar[bool] = False

    def __init__(self, *, height: str = "1fr") -> None:
        super().__init__()
        self.styles.height = height
        self._lines_for: LinesFor = lambda _width: []

    def tell(self, lines_for: LinesFor, *, is_new: bool = True) -> None:
        """Show the lines for a width; a text that only grows keeps its end in sight, if it was."""
        was_at_end = self.scroll_offset.y >= self.max_scroll_y - 1
        self._lines_for = lines_for
        lines = lines_for(self.line_width)
        if lines != self.rows:
            self.show(lines)
            if not is_new and was_at_end:
                self.follow()
        if is_new:
            self.scroll_home(animate=False, force=True)

    def follow(self) -> None:
        """Scroll to the end, once the lines are laid out."""
        self.call_after_refresh(self.scroll_end, animate=False, force=True)

    def on_resize(self) -> None:
        was_at_end = self.scroll_offset.y >= self.max_scroll_y - 1
        super().on_resize()
        self.show(self._lines_for(self.line_width))
        if was_at_end and self.scroll_offset.y:
            self.follow()

    def turn(self, by: int) -> None:
        """Scroll by half of what is visible."""
        self.scroll_relative(y=by * max(1, self.size.height // 2), animate=False)


def wrapped(text: str, width: int, style: str = "", *, before: Span = ("", "")) -> list[ShownLine]:
    """Text from outside as lines of at most this width; `before` stands before each of them."""
    room = max(8, width - cell_len(before[0]))
    found = plain(text[:LONGEST]).expandtabs(4).splitlines() or [""]
    parts = [part for line in found for part in _parts(line, room)]
    return [ShownLine(spans=(before, (part, style))) for part in parts]


def _parts(line: str, width: int) -> Iterator[str]:
    """The line in pieces that fit, broken at a blank where there is one."""
    if cell_len(line) <= width:
        yield line
        return
    now = ""
    for word in line.split(" "):
        longer = f"{now} {word}" if now else word
        if cell_len(longer) <= width:
            now = longer
            continue
        if now:
            yield now
        *whole, now = chop_cells(word, width) or [""]
        yield from whole
    yield now
