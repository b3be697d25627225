"""The line in which a person types the filter of the board; the board follows each letter."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input


class FilterBar(Input):
    """Enter keeps the filter, escape clears it; both lead back to the list."""

    DEFAULT_CSS = """
    FilterBar { height: 1; border: none; padding: 0 1; background: $boost; display: none; }
    FilterBar:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "clear_filter", "clear", show=False),
        Binding("down", "move(1)", "down", show=False),
        Binding("up", "move(-1)", "up", show=False),
    ]

    class Closed(Message):
        """The person is done; `text` is the filter to keep."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Stepped(Message):
        """The person moves the cursor of the list while typing."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        hint = "filter: words, status:todo, label:x, agent:x, parent:1; escape clears it"
        super().__init__(placeholder=hint, id=id, select_on_focus=False)

    def open(self, text: str) -> None:
        self.value = text
        self.cursor_position = len(text)
        self.display = True
        self.screen.set_focus(self)  # at once, since the next key is part of the filter

    def action_clear_filter(self) -> None:
        self.post_message(self.Closed(""))

    async def action_submit(self) -> None:
        self.post_message(self.Closed(self.value))

    def action_move(self, by: int) -> None:
        self.post_message(self.Stepped(by))
