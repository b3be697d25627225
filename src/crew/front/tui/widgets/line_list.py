"""A list of lines with a cursor; a line is made when it comes into sight, so any number will do."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from crew.domain.kernel.frozen import frozen
from crew.front.tui.widgets.paint import Palette, Span, Spans, segments


@frozen
class ShownLine:
    """One line: its text, and a key by which the cursor finds it again after a change."""

    spans: Spans
    key: str = ""
    is_heading: bool = False


def text_line(text: str, style: str = "", *, key: str = "") -> ShownLine:
    return ShownLine(spans=((text, style),), key=key)


def heading(text: str) -> ShownLine:
    return ShownLine(spans=((text, "bold muted"),), is_heading=True)


class LineList(ScrollView, can_focus=True):
    """Shows rows as lines; `line_of` makes the line of a row for a width."""

    DEFAULT_CSS = """
    LineList { scrollbar-size-vertical: 1; overflow-x: hidden; background: $background; }
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
        self._made: dict[int, ShownLine] = {}
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
        self._made.clear()
        self.virtual_size = Size(max(1, self.size.width), len(rows))
        if self.has_cursor:
            self._find(key, key_of or self._key_of_row)
        self.refresh()

    def _find(self, key: str, key_of: Callable[[Any], str]) -> None:
        at = next((n for n, row in enumerate(self._rows) if key and key_of(row) == key), None)
        before = self._cursor
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
        self.refresh()

    def freshen(self) -> None:
        """Make the lines in sight again, and draw only if one of them differs."""
        top = self.scroll_offset.y
        for index in range(top, min(top + self.size.height, len(self._rows))):
            if index in self._made and self._made[index] != self._fresh(index):
                self.redraw()
                return

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

    def render_line(self, y: int) -> Strip:
        palette: Palette = self.app.palette  # type: ignore[attr-defined]
        index, width = y + self.scroll_offset.y, self.line_width
        if index >= len(self._rows):
            return Strip([Segment(" " * width)], width).apply_style(self.rich_style)
        over = ""
        if self.has_cursor and index == self._cursor and self._rows:
            over = "reverse" if self.has_focus else "bold"
        spans = (*self.marked(index), *self.line(index).spans)
        made = segments(spans, width, palette, over=over)
        return Strip(made, width).apply_style(self.rich_style)

    def marked(self, index: int) -> Sequence[Span]:  # noqa: ARG002 - for lists with marks
        """What stands before the line; an empty mark keeps no room."""
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
            self._cursor = index
            self.post_message(self.Moved(self))
        self._keep_in_sight()
        self.refresh()

    def move_to_key(self, key: str) -> bool:
        """Put the cursor on the line with this key; False if there is none."""
        for index in range(len(self._rows)):
            if self.line(index).key == key:
                self.move_to(index)
                return True
        return False

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
        self.virtual_size = Size(max(1, self.size.width), len(self._rows))
        self.refresh()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()
