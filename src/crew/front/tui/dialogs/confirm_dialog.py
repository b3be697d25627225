"""Asks a person to confirm: y or enter confirms, n or escape does not."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from crew.front.tui.dialogs.dialog import Keys, ViewDialog


class ConfirmDialog(ViewDialog[bool]):
    """True if the person confirmed."""

    CSS = "ConfirmDialog > Vertical { width: 70; border: round $warning; padding: 1 2; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "yes"),
        Binding("n,q", "answer(False)", "no"),
    ]
    keys: Keys = (("y", "yes"), ("n", "no"))

    def action_answer(self, answer: bool) -> None:  # noqa: FBT001 - Textual passes it by position
        self.dismiss(answer)
