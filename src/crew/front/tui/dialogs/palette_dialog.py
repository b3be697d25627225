"""The command palette: every action and every command of crew, found while the person types."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

from crew.front.tui.dialogs.choice import Choice
from crew.front.tui.dialogs.choice_dialog import ChoiceDialog
from crew.front.tui.dialogs.dialog import Keys

COMMAND, ACTION, LINE = "command:", "action:", "line:"
"""How the values begin: a command of crew, an action of the view, a line that was typed."""


class PaletteDialog(ChoiceDialog):
    """An action, or the line of a command with its arguments."""

    CSS = "PaletteDialog > Vertical > LineList { height: 100; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "complete", show=False, priority=True)
    ]
    keys: Keys = (
        ("enter", "run"),
        ("tab", "complete"),
        ("escape", "back"),
    )

    def __init__(
        self, choices: Sequence[Choice], *, starts: Mapping[str, str], text: str = ""
    ) -> None:
        """`starts` is how the line of each command begins, with the chosen task if it takes one."""
        super().__init__("Command", choices, searchable=True, text=text)
        self._starts = starts

    def found(self, text: str) -> Sequence[Choice]:
        words = text.split()
        is_typed = bool(words) and words[0] in self._starts and (len(words) > 1 or text[-1] == " ")
        return super().found(words[0] if is_typed else text)

    def action_take(self) -> None:
        """Run the line if it begins with a command; else what the cursor is on."""
        line = self.query_one(Input).value.strip()
        row = self.lines.cursor_row
        if line.split()[:1] and line.split()[0] in self._starts:
            self.dismiss(f"{LINE}{line}")
        elif isinstance(row, Choice) and row.value.startswith(COMMAND):
            self.action_complete()
        elif isinstance(row, Choice):
            self.dismiss(row.value)

    def action_complete(self) -> None:
        """Write the beginning of the command that the cursor is on."""
        row = self.lines.cursor_row
        if isinstance(row, Choice) and row.value.startswith(COMMAND):
            name = row.value.removeprefix(COMMAND)
            field = self.query_one(Input)
            field.value = self._starts[name]
            field.cursor_position = len(field.value)
