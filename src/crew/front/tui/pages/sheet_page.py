"""The base of pages with a text below the list: it tells of the row that the cursor is on."""

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from crew.front.tui.pages.page import Page
from crew.front.tui.widgets.line_list import LineList
from crew.front.tui.widgets.sheet import Sheet


class SheetPage(Page):
    """A list, and a sheet below it that ctrl+d and ctrl+u scroll."""

    sheet_height: ClassVar[str] = "1fr"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+d", "turn(1)", "scroll the text below the list down", show=False),
        Binding("ctrl+u", "turn(-1)", "scroll the text below the list up", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.sheet = Sheet(height=self.sheet_height)
        self._told = ""

    def below(self) -> Iterable[Widget]:
        return (self.sheet,)

    def on_line_list_moved(self, message: LineList.Moved) -> None:
        if message.lines is self:
            self.tell()

    def action_turn(self, by: int) -> None:
        self.sheet.turn(by)

    def tell(self) -> None:
        """Write the sheet about the row that the cursor is on."""

    def is_another(self, subject: str) -> bool:
        """Whether the sheet told of another subject before; a new one is read from its start."""
        before, self._told = self._told, subject
        return before != subject
