"""The form for a new task: title, text, agent, labels, what it waits for, priority."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input, Label, TextArea

from crew.domain.kernel.frozen import frozen
from crew.front.tui.dialogs.dialog import Keys, ViewDialog


@frozen
class TaskWish:
    """The fields of the form as they were written."""

    title: str = ""
    body: str = ""
    agent: str = ""
    labels: str = ""
    after: str = ""
    priority: str = ""


ONE_LINE = {
    "title": "what to do, in one line",
    "agent": "empty: the default agent",
    "labels": "separated by commas",
    "after": "ids of the tasks that it waits for, separated by commas",
    "priority": "0 (most urgent) to 4; empty: 2",
}


class FormRow(Horizontal):
    """A field with its name before it."""

    def __init__(self, label: str, widget: Widget) -> None:
        super().__init__()
        self._label = label
        self._field = widget

    def compose(self) -> ComposeResult:
        yield Label(self._label)
        yield self._field


class TaskForm(ViewDialog[TaskWish | None]):
    """The wish; an unfinished one is shown again after a refusal."""

    CSS = """
    TaskForm > Vertical { width: 90; }
    TaskForm FormRow { height: auto; }
    TaskForm Label { width: 10; color: $text-muted; }
    TaskForm FormRow Input { width: 1fr; }
    TaskForm FormRow TextArea { width: 1fr; height: 7; border: none; padding: 0; margin: 0 0 1 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "make it", priority=True),
        Binding("tab", "app.focus_next", "next field", show=False, priority=True),
        Binding("shift+tab", "app.focus_previous", "field before", show=False, priority=True),
    ]
    keys: Keys = (
        ("ctrl+s", "make it"),
        ("tab", "next field"),
        ("escape", "back"),
    )

    def __init__(self, title: str, wish: TaskWish, *, kinds: Sequence[str] = ()) -> None:
        super().__init__(title)
        self._wish = wish
        self._kinds = kinds

    def parts(self) -> Iterator[Widget]:
        yield self._row("title")
        yield FormRow("text", TextArea(self._wish.body, tab_behavior="focus", id="body"))
        for name in list(ONE_LINE)[1:]:
            yield self._row(name)

    def _row(self, name: str) -> FormRow:
        suggester = SuggestFromList(self._kinds) if name == "agent" else None
        hint = ONE_LINE[name]
        if name == "agent" and self._kinds:
            hint = f"{hint}, {self._kinds[0]}"
        field = Input(
            getattr(self._wish, name),
            placeholder=hint,
            suggester=suggester,
            id=f"field-{name}",
            compact=True,
        )
        return FormRow(name, field)

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#field-title", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes to the next field, and makes the task in the last one."""
        if event.input.id == f"field-{list(ONE_LINE)[-1]}":
            self.action_send()
        else:
            self.focus_next()

    def action_send(self) -> None:
        fields = {name: self.query_one(f"#field-{name}", Input).value for name in ONE_LINE}
        body = self.query_one(TextArea).text
        wish = replace(self._wish, body=body, **fields)
        if wish.title.strip():
            self.dismiss(wish)
        else:
            self.query_one("#field-title", Input).focus()
            self.notify("a task needs a title", severity="warning")
