"""Lets a person write a text: one line, or several with ctrl+s to send."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, TextArea

from crew.front.tui.widgets.line_bar import LineBar
from crew.front.tui.widgets.paint import safe


class TextDialog(ModalScreen[str | None]):
    """The text; None if the person left. A text of several lines is sent with ctrl+s."""

    CSS = """
    TextDialog { align: center middle; }
    TextDialog > Vertical {
        width: 90; max-width: 95%; height: auto; padding: 0 1;
        border: round $primary; background: $surface;
    }
    TextDialog TextArea { height: 12; max-height: 60%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "send", priority=True),
        Binding("escape", "leave", "back", priority=True),
    ]

    def __init__(self, title: str, *, text: str = "", several_lines: bool = False) -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._several_lines = several_lines

    def compose(self) -> ComposeResult:
        with Vertical():
            yield LineBar(id="title")
            yield TextArea(self._text) if self._several_lines else Input(self._text)
            yield LineBar(id="keys")

    def on_mount(self) -> None:
        self.query_one("#title", LineBar).show(((safe(self._title), "bold"),))
        send = "ctrl+s" if self._several_lines else "enter"
        keys = ((send, "key"), (" send   ", "muted"), ("escape", "key"), (" back", "muted"))
        self.query_one("#keys", LineBar).show(keys)

    def on_input_submitted(self) -> None:
        self.action_send()

    def action_send(self) -> None:
        is_area = self._several_lines
        self.dismiss(self.query_one(TextArea).text if is_area else self.query_one(Input).value)

    def action_leave(self) -> None:
        self.dismiss(None)
