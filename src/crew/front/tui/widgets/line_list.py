"""A list of lines with a cursor; a line is made when it comes into sight, so any number will do."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from crew.domain.kernel.frozen import frozen
from crew.front.tui.widgets.paint import Palette, segments
from crew.front.tui.widgets.safe_text import Span, Spans


@frozen
class ShownLine:
    """One line: its text, and a key by which the cursor finds it again after a change."""

    spans: Spans
    key: str = ""
    is_heading: bool = False


_Content: TypeAlias = tuple[Spans, Spans, str, int, Palette]
"""The marks before a line, the line, the style on top of it, its width and its colours."""

_Painted: TypeAlias = tuple[_Content, Style, Strip]

MOST_PAINTED = 2_000
"""How many lines are kept as they were painted, so that scrolling paints only new ones."""


def text_line(text: str, style: str = "", *, key: str = "") -> ShownLine:
    return ShownLine(spans=((text, style),), key=key)


def heading(text: str) -> ShownLine:
    return ShownLine(spans=((text, "bold muted"),), is_heading=True)


class LineList(ScrollView, can_focus=True):
    """Shows rows as lines; `line_of` makes the line of a row for a width."""

    DEFAULT_CSS = """
    LineList {
        scrollbar-size-vertical: 1; overflow-x: hidden; background: $background;
        scrollbar-background: $background; scrollbar-background-hover: $background;
        scrollbar-background-active: $background; scrollbar-color: $panel-lighten-2;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "down", show=False),
        Binding("k,up", "move(-1)", "up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "page down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("g,home", "jump(0)", "first", show=False),
        Binding("G,end", "jump(-1)", "last", show=False),
    ]
    has_cursor: ClassVar[bool] = True

    class Moved(Message):
        """The cursor is on another line."""

        def __init__(self, lines: "LineList") -> None:
            super().__init__()
            self.lines = lines

        @property
        def control(self) -> "LineList":
            return self.lines

    class Chosen(Moved):
        """A line was clicked that the cursor was on already."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._rows: Sequence[Any] = ()
        self._make_line: Callable[[Any, int], ShownLine] = lambda row, _width: row
        self._key_of: Callable[[Any], str] = self._key_of_row
        self._made: dict[int, ShownLine] = {}
        self._painted: dict[int, _Painted] = {}
        self._cursor = 0

    # What is shown

    def show(
        self,
        rows: Sequence[Any],
        line_of: Callable[[Any, int], ShownLine] | None = None,
        *,
        key_of: Callable[[Any], str] | None = None,
    ) -> None:
        """Show other rows; the cursor stays on its key, or else in its place."""
        key = self.cursor_key if self.has_cursor else ""
        self._rows = rows
        self._make_line = line_of or (lambda row, _width: row)
        self._key_of = key_of or self._key_of_row
        self._made.clear()
        self.virtual_size = Size(max(1, self.size.width), len(rows))
        if self.has_cursor:
            self._find(key)
        self._refresh_changed()

    def _place_of(self, key: str) -> int | None:
        """The row with this key; the one under the cursor is looked at first."""
        if not key:
            return None
        if self._cursor < len(self._rows) and self._key_of(self._rows[self._cursor]) == key:
            return self._cursor
        return next((n for n, row in enumerate(self._rows) if self._key_of(row) == key), None)

    def _find(self, key: str) -> None:
        at, before = self._place_of(key), self._cursor
        self._cursor = self._clamped(self._cursor if at is None else at)
        if self._rows and self.line(self._cursor).is_heading:
            self._cursor = self._free(self._cursor, 1)
        if at is None or at != before:
            self._keep_in_sight()
        if self.is_mounted:
            self.post_message(self.Moved(self))

    def _key_of_row(self, row: Any) -> str:
        return self._make_line(row, self.line_width).key

    def redraw(self) -> None:
        """Make all lines again: what they are made from has changed, their number has not."""
        self._made.clear()
        self._refresh_changed()

    def _refresh_changed(self) -> None:
        """Paint the lines in sight that look different now; a hidden list does nothing."""
        first = self.scroll_offset.y
        for index in range(first, first + self.size.height):
            before = self._painted.get(index)
            if before is None or before[0] != self._content(index):
                self.refresh_line(index)

    def freshen(self) -> None:
        """Make the lines in sight again, and draw those that differ."""
        self.redraw()

    def _fresh(self, index: int) -> ShownLine:
        return self._make_line(self._rows[index], self.line_width)

    @property
    def rows(self) -> Sequence[Any]:
        return self._rows

    @property
    def line_width(self) -> int:
        return max(1, self.scrollable_content_region.width)

    def line(self, index: int) -> ShownLine:
        found = self._made.get(index)
        if found is None:
            found = self._made[index] = self._fresh(index)
        return found

    def _content(self, index: int) -> _Content:
        """Everything that decides how this line looks."""
        width, palette = self.line_width, self.app.palette  # type: ignore[attr-defined]
        if index >= len(self._rows):
            return (), (), "", width, palette
        over = ""
        if self.has_cursor and index == self._cursor:
            over = "cursor" if self.has_focus else "resting"
        return tuple(self.marked(index)), self.line(index).spans, over, width, palette

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        content, style = self._content(index), self.rich_style
        found = self._painted.get(index)
        if found is not None and found[0] == content and found[1] == style:
            return found[2]
        marks, spans, over, width, palette = content
        made = segments((*marks, *spans), width, palette, over=over)
        strip = Strip(made, width).apply_style(style).simplify()
        if len(self._painted) >= MOST_PAINTED:
            self._painted.clear()
        self._painted[index] = content, style, strip
        return strip

    def marked(self, index: int) -> Sequence[Span]:  # noqa: ARG002 - for lists with marks
        """The mark before the line; an empty one takes no room."""
        return ()

    # The cursor

    @property
    def cursor(self) -> int:
        return self._cursor

    @property
    def cursor_row(self) -> Any | None:
        return self._rows[self._cursor] if 0 <= self._cursor < len(self._rows) else None

    @property
    def cursor_key(self) -> str:
        return self.line(self._cursor).key if 0 <= self._cursor < len(self._rows) else ""

    def move_to(self, index: int) -> None:
        """Put the cursor on this line, or on the next one that is no heading."""
        if not self._rows:
            return
        step = 1 if index >= self._cursor else -1
        index = self._free(self._clamped(index), step)
        if index != self._cursor:
            before, self._cursor = self._cursor, index
            self.refresh_line(before)
            self.refresh_line(index)
            self.post_message(self.Moved(self))
        self._keep_in_sight()

    def move_to_key(self, key: str) -> bool:
        """Put the cursor on the line with this key; False if there is none."""
        at = self._place_of(key)
        if at is not None:
            self.move_to(at)
        return at is not None

    def _clamped(self, index: int) -> int:
        return max(0, min(index, len(self._rows) - 1))

    def _free(self, index: int, step: int) -> int:
        """The nearest line that is no heading, in this direction, or else in the other."""
        for way in (step, -step):
            at = index
            while 0 <= at < len(self._rows):
                if not self.line(at).is_heading:
                    return at
                at += way
        return index

    def _keep_in_sight(self) -> None:
        line = Region(0, max(0, self._cursor - 1 if self._cursor == 1 else self._cursor), 1, 1)
        self.scroll_to_region(line, animate=False, force=True, x_axis=False)

    # Keys and mouse

    def action_move(self, by: int) -> None:
        if self.has_cursor:
            self.move_to(self._cursor + by)
        else:
            self.scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        step = by * max(1, self.size.height - 1)
        self.action_move(step)

    def action_jump(self, to: int) -> None:
        if self.has_cursor:
            self.move_to(0 if to == 0 else len(self._rows) - 1)
        elif to == 0:
            self.scroll_home(animate=False)
        else:
            self.scroll_end(animate=False)

    def on_click(self, event: events.Click) -> None:
        index = event.y + self.scroll_offset.y
        if not self.has_cursor or index >= len(self._rows):
            return
        was_here = index == self._cursor
        self.move_to(index)
        if was_here:
            self.post_message(self.Chosen(self))

    def on_resize(self) -> None:
        self._made.clear()
        self._painted.clear()
        self.virtual_size = Size(max(1, self.size.width), len(self._rows))
        self.refresh()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()
