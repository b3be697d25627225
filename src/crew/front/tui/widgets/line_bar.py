"""One line of the view that is not a list: the tabs, the status line, the keys."""

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from crew.front.tui.widgets.paint import Palette, segments
from crew.front.tui.widgets.safe_text import Spans


class LineBar(Widget):
    """Shows one line, cut at the edge."""

    DEFAULT_CSS = "LineBar { height: 1; background: $surface; }"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._spans: Spans = ()

    def show(self, spans: Spans) -> None:
        if spans != self._spans:
            self._spans = spans
            self.refresh()

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self._spans)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        palette: Palette = self.app.palette  # type: ignore[attr-defined]
        made = segments(self._spans, width, palette) if y == 0 else [Segment(" " * width)]
        return Strip(made, width).apply_style(self.rich_style)
