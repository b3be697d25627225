"""Lets a person choose one line of a list: enter or a click chooses, escape does not."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from crew.domain.kernel.frozen import frozen
from crew.front.tui.widgets.line_bar import LineBar
from crew.front.tui.widgets.line_list import LineList, ShownLine
from crew.front.tui.widgets.paint import fit, safe


@frozen
class Choice:
    """One line: the value that it stands for, what it is called, and a word about it."""

    value: str
    title: str
    about: str = ""


class ChoiceDialog(ModalScreen[str | None]):
    """The value of the chosen line; None if the person chose none."""

    CSS = """
    ChoiceDialog { align: center middle; }
    ChoiceDialog > Vertical {
        width: 76; max-width: 95%; height: auto; max-height: 80%; padding: 0 1;
        border: round $primary; background: $surface;
    }
    ChoiceDialog LineList { height: auto; max-height: 20; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "choose"),
        Binding("escape,q", "leave", "back"),
    ]

    def __init__(self, title: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._title = title
        self._choices = choices

    def compose(self) -> ComposeResult:
        with Vertical():
            yield LineBar(id="title")
            yield LineList(id="choices")

    def on_mount(self) -> None:
        self.query_one("#title", LineBar).show(((safe(self._title), "bold"),))
        lines = self.query_one("#choices", LineList)
        lines.show([self._line(choice) for choice in self._choices])
        lines.focus()

    def _line(self, choice: Choice) -> ShownLine:
        spans = ((fit(safe(choice.title), 28), ""), ("  ", ""), (safe(choice.about), "muted"))
        return ShownLine(spans=spans, key=choice.value)

    def on_line_list_chosen(self) -> None:
        self.action_take()

    def action_take(self) -> None:
        self.dismiss(self.query_one("#choices", LineList).cursor_key or None)

    def action_leave(self) -> None:
        self.dismiss(None)
