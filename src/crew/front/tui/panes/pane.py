"""The base of all panes: a list of lines about one task."""

from typing import ClassVar

from crew.front.tui.live.picture import News, Picture
from crew.front.tui.widgets.line_list import LineList


class Pane(LineList):
    """One view of a task. It is told only while it is visible."""

    title: ClassVar[str] = ""
    has_cursor: ClassVar[bool] = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.task_id = ""

    @property
    def picture(self) -> Picture:
        found: Picture = self.app.picture  # type: ignore[attr-defined]
        return found

    def open_task(self, task: str) -> None:
        """Show another task; the pane was not visible or showed another one."""
        self.task_id = task
        self.scroll_home(animate=False)
        self.fill()

    def fill(self) -> None:
        """Make all lines for the task."""

    def take(self, news: News) -> None:
        """Something changed while this task is shown."""

    def tick(self) -> None:
        """Look at what has no facts, such as a log; called ten times a second while visible."""

    def leave(self) -> None:
        """The pane is no longer visible: release what it holds."""
