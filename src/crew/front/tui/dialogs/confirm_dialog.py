"""Asks a person to confirm: y or enter confirms, n or escape does not."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from crew.front.tui.widgets.line_bar import LineBar
from crew.front.tui.widgets.paint import safe


class ConfirmDialog(ModalScreen[bool]):
    """True if the person confirmed."""

    CSS = """
    ConfirmDialog { align: center middle; }
    ConfirmDialog > Vertical {
        width: 70; max-width: 95%; height: auto; padding: 1 2; border: round $warning;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "yes"),
        Binding("n,escape,q", "answer(False)", "no"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical():
            yield LineBar(id="question")
            yield LineBar(id="answers")

    def on_mount(self) -> None:
        self.query_one("#question", LineBar).show(((safe(self._question), "bold"),))
        self.query_one("#answers", LineBar).show(
            (("y", "key"), (" yes   ", ""), ("n", "key"), (" no", ""))
        )

    def action_answer(self, answer: bool) -> None:  # noqa: FBT001 - Textual passes it by position
        self.dismiss(answer)
