"""Lets a person write a text: one line, or several with ctrl+s to send."""

from collections.abc import Iterator
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input, TextArea

from crew.front.tui.dialogs.dialog import ViewDialog


class TextDialog(ViewDialog[str | None]):
    """The text; None if the person left. A text of several lines is sent with ctrl+s."""

    CSS = """
    TextDialog > Vertical { width: 90; }
    TextDialog TextArea { height: 10; border: none; padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "send", "send", priority=True)]

    def __init__(self, title: str, *, text: str = "", several_lines: bool = False) -> None:
        super().__init__(title)
        self._text = text
        self._several_lines = several_lines
        self.keys = (("ctrl+s" if several_lines else "enter", "send"), ("escape", "back"))

    def parts(self) -> Iterator[Widget]:
        yield TextArea(self._text) if self._several_lines else Input(self._text)

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(TextArea if self._several_lines else Input).focus()

    def on_input_submitted(self) -> None:
        self.action_send()

    def action_send(self) -> None:
        is_area = self._several_lines
        self.dismiss(self.query_one(TextArea).text if is_area else self.query_one(Input).value)
