"""The base of all panes: a list of lines about one task."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual.binding import Binding, BindingType
from textual.message import Message

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen
from crew.front.tui.live.picture import News, Picture
from crew.front.tui.widgets.line_list import LineList, text_line
from crew.front.tui.widgets.safe_text import Span, safe
from crew.workplace import Workplace

if TYPE_CHECKING:
    from crew.front.tui.view_app import CrewView

SETTLED_S = 0.15
"""How long a task must stay chosen before something slow is read about it."""

T = TypeVar("T")


@frozen
class Unread:
    """Why something could not be read, with the next step."""

    why: str


class Pane(LineList):
    """One view of a task. It gets news only while it is visible."""

    title: ClassVar[str] = ""
    keys: ClassVar[str] = ""
    """The keys of the pane itself, for its title line."""

    has_cursor: ClassVar[bool] = False
    DEFAULT_CSS = "Pane { overflow-y: scroll; }"  # wrapped lines need a width that stays
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("z", "zoom", "whole width", show=False),
    ]

    class Retitled(Message):
        """The words of the title have changed."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.task_id = ""
        self._opened_at = 0.0

    @property
    def view(self) -> "CrewView":
        found: CrewView = self.app  # type: ignore[assignment]
        return found

    @property
    def picture(self) -> Picture:
        return self.view.picture

    def open_task(self, task: str) -> None:
        """Show another task; the pane was not visible or showed another one."""
        self.task_id = task
        self._opened_at = time.monotonic()
        self.scroll_home(animate=False)
        self.fill()

    @property
    def is_settled(self) -> bool:
        """Whether the person stays with this task, so that reading about it is worth its cost."""
        return self.task_id != "" and time.monotonic() >= self._opened_at + SETTLED_S

    def fill(self) -> None:
        """Make all lines for the task."""

    def take(self, news: News) -> None:
        """Something changed while this task is shown."""

    def tick(self) -> None:
        """Look at what has no facts, such as a log; called ten times a second while visible."""

    def leave(self) -> None:
        """The pane is no longer visible: release what it holds."""

    # The title line

    def title_spans(self) -> list[Span]:
        about = f" of {safe(self.task_id)}" if self.task_id else ""
        spans: list[Span] = [(f" {self.title}{about}", "bold"), *self.remarks()]
        keys = f"{self.keys}  z wide  v next" if self.has_focus else "l look  v next"
        return [*spans, (f"   {keys}", "muted")]

    def remarks(self) -> list[Span]:
        """Further parts of the title: whether a log is followed, how many comments there are."""
        return []

    def retitle(self) -> None:
        self.post_message(self.Retitled())

    def on_focus(self) -> None:
        self.retitle()

    def on_blur(self) -> None:
        self.retitle()

    # For all panes

    def say(self, words: str, style: str = "muted") -> None:
        """Show one calm sentence in place of lines."""
        self.show([text_line(safe(words), style)])

    def action_zoom(self) -> None:
        """Give the pane the whole width, or the list its part back."""
        self.screen.toggle_class("zoomed")

    async def read(self, look: Callable[[Workplace], T]) -> T | Unread:
        """Read something in a thread, with a workplace of its own."""
        root = self.view.root

        def read_there() -> T | Unread:
            workplace = Workplace(root=root)
            try:
                return look(workplace)
            except CrewError as error:
                return Unread(why=f"{error.message} ({error.hint})")
            except OSError as error:
                return Unread(why=str(error))
            finally:
                workplace.close_database()

        return await asyncio.to_thread(read_there)
