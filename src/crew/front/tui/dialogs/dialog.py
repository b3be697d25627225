"""The base of all dialogs: a box in the middle with a title, and its keys in the last line."""

from collections.abc import Iterator
from typing import ClassVar, TypeAlias, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from crew.front.tui.actions.held_keys import HeldKeys, current_holder
from crew.front.tui.widgets.line_bar import LineBar
from crew.front.tui.widgets.line_list import LineList
from crew.front.tui.widgets.safe_text import Span, safe

R = TypeVar("R")

Keys: TypeAlias = tuple[tuple[str, str], ...]

LONGEST_TITLE = 600


class ViewDialog(ModalScreen[R]):
    """A dialog; `dismiss` hands over what the person decided, None if they left."""

    DEFAULT_CSS = """
    ViewDialog { align: center middle; background: $background 60%; }
    ViewDialog > Vertical {
        width: 76; max-width: 95%; height: auto; max-height: 90%; padding: 0 1;
        border: round $primary; background: $surface;
    }
    ViewDialog #dialog-title { height: auto; max-height: 6; text-style: bold; margin-bottom: 1; }
    ViewDialog #dialog-keys { margin-top: 1; }
    ViewDialog Input { height: 1; border: none; padding: 0; background: $boost; }
    ViewDialog Input:focus { border: none; background: $panel; }
    ViewDialog LineList { background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "back", priority=True)]
    keys: Keys = ()
    """The keys of this dialog and what each does, for its last line."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._is_decided = False
        self._holder = current_holder()

    def dismiss(self, result: R | None = None) -> AwaitComplete:
        """Hand over the first decision; keys that come before the dialog is gone are too late."""
        if self._is_decided:
            return AwaitComplete()
        self._is_decided = True
        if (held := self._held_keys) is not None and self._holder is not None:
            held.hold(self._holder)  # the action may open another dialog
        return super().dismiss(result)

    @property
    def _held_keys(self) -> HeldKeys | None:
        return getattr(self.app, "held_keys", None)

    def _take_keys(self) -> None:
        """The dialog is shown and has the focus."""
        if (held := self._held_keys) is not None:
            held.let_pass(self._holder)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(wrapped(self._title)), id="dialog-title", markup=False)
            yield from self.parts()
            yield LineBar(id="dialog-keys")

    def parts(self) -> Iterator[Widget]:
        """The content between the title and the keys."""
        yield from ()

    def on_mount(self) -> None:
        spans: list[Span] = []
        for key, words in self.keys:
            spans += [(key, "key"), (f" {words}   ", "muted")]
        self.query_one("#dialog-keys", LineBar).show(spans)
        self.call_after_refresh(self.on_resize)
        self.call_after_refresh(self._take_keys)

    def on_resize(self) -> None:
        """A list gets the height that is left, so that the keys below it stay in sight."""
        if not self.is_mounted:
            return
        others = [
            one for one in self.query("ViewDialog > Vertical > *") if not isinstance(one, LineList)
        ]
        taken = sum(one.outer_size.height + one.styles.margin.height for one in others)
        for lines in self.query(LineList):
            lines.styles.max_height = max(3, self.size.height * 9 // 10 - taken - 2)

    def action_leave(self) -> None:
        self.dismiss(None)


def wrapped(text: str) -> str:
    """A text of some lines: nothing in it is markup or a control code, and it is not long."""
    lines = [safe(line) for line in text[: LONGEST_TITLE + 1].split("\n")]
    shown = "\n".join(lines)
    return shown if len(shown) <= LONGEST_TITLE else shown[:LONGEST_TITLE] + "…"
