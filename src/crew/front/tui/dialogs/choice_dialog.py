"""Lets a person choose one line of a list: enter, its key or a click chooses, escape does not."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from crew.front.tui.dialogs.choice import Choice
from crew.front.tui.dialogs.dialog import Keys, ViewDialog
from crew.front.tui.dialogs.fuzzy_search import best_matches
from crew.front.tui.widgets.line_list import LineList, ShownLine, text_line
from crew.front.tui.widgets.paint import fit, width_of
from crew.front.tui.widgets.safe_text import Span, safe

__all__ = ["Choice", "ChoiceDialog"]


class ChoiceDialog(ViewDialog[str | None]):
    """The value of the chosen line; None if the person chose none.

    With `searchable`, what the person types leaves only the lines that match it.
    """

    CSS = """
    ChoiceDialog > Vertical > LineList { height: auto; }
    ChoiceDialog > Vertical > Input { margin-bottom: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "choose", priority=True),
        Binding("down,ctrl+n", "move(1)", "down", show=False, priority=True),
        Binding("up,ctrl+p", "move(-1)", "up", show=False, priority=True),
        Binding("q", "leave", "back", show=False),
    ]
    keys: Keys = (("enter", "choose"), ("escape", "back"))

    def __init__(
        self, title: str, choices: Sequence[Choice], *, searchable: bool = False, text: str = ""
    ) -> None:
        super().__init__(title)
        self._choices = choices
        self._searchable = searchable
        self._text = text
        most = 34 if any(one.about for one in choices) else 200
        self._title_width = width_of((safe(one.title) for one in choices), least=8, most=most)

    def parts(self) -> Iterator[Widget]:
        if self._searchable:
            yield Input(
                self._text, placeholder="type to search", id="search", select_on_focus=False
            )
        yield LineList(id="choices")

    def on_mount(self) -> None:
        super().on_mount()
        self._show(self.found(self._text))
        self.query_one("#search" if self._searchable else "#choices").focus()

    @property
    def lines(self) -> LineList:
        return self.query_one("#choices", LineList)

    def found(self, text: str) -> Sequence[Choice]:
        """The choices that match what was typed, the best one first."""
        return best_matches(text, self._choices)

    def _show(self, choices: Sequence[Choice]) -> None:
        if choices:
            self.lines.show(choices, self._line, key_of=lambda choice: choice.value)
        else:
            self.lines.show([text_line("nothing matches", "muted")])

    def _line(self, choice: Choice, _width: int) -> ShownLine:
        has_keys = any(one.key for one in self._choices)
        key: list[Span] = [(fit(choice.key, 8), "key")] if has_keys else []
        about = (("  ", ""), (safe(choice.about), "muted"))
        title = (fit(safe(choice.title), self._title_width), "")
        return ShownLine(spans=(*key, title, *about), key=choice.value)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._show(self.found(event.value))
        self.lines.move_to(0)

    def on_key(self, event: events.Key) -> None:
        """A key of a choice chooses it, where no text is typed."""
        if self._searchable:
            return
        for choice in self._choices:
            if choice.key and choice.key in (event.character, event.key):
                event.stop()
                self.dismiss(choice.value)
                return

    def on_line_list_chosen(self) -> None:
        self.action_take()

    def action_move(self, by: int) -> None:
        self.lines.action_move(by)

    def action_take(self) -> None:
        row = self.lines.cursor_row
        if isinstance(row, Choice):
            self.dismiss(row.value)
