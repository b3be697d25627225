"""All keys of the view by section, as the table of actions and the config have them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from crew.front.tui.dialogs.dialog import Keys, ViewDialog
from crew.front.tui.widgets.line_list import LineList, ShownLine, heading, text_line
from crew.front.tui.widgets.paint import fit
from crew.front.tui.widgets.safe_text import safe

Section = tuple[str, Sequence[tuple[str, str]]]
"""A title, and keys with what each does."""


class HelpLines(LineList):
    """Scrolls without a cursor."""

    has_cursor: ClassVar[bool] = False


class HelpDialog(ViewDialog[None]):
    """Shows the keys until the person leaves."""

    CSS = "HelpDialog > Vertical > HelpLines { height: auto; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,question_mark,enter", "leave", "back", show=False)
    ]
    keys: Keys = (("j k", "scroll"), ("escape", "back"))

    def __init__(self, sections: Iterable[Section]) -> None:
        super().__init__("Keys")
        self._sections = tuple(sections)

    def parts(self) -> Iterator[Widget]:
        yield HelpLines(id="help")

    def on_mount(self) -> None:
        super().on_mount()
        lines = self.query_one("#help", HelpLines)
        lines.show(list(help_lines(self._sections)))
        lines.focus()


def help_lines(sections: Iterable[Section]) -> Iterator[ShownLine]:
    for number, (title, keys) in enumerate(sections):
        if number:
            yield text_line("")
        yield heading(title)
        for key, words in keys:
            yield ShownLine(spans=((fit(key, 14), "key"), (safe(words), "")))
