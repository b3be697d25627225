"""The base of all pages: a list that follows the crew, and the task that its cursor is on."""

from typing import ClassVar

from crew.front.tui.live.picture import News, Picture
from crew.front.tui.widgets.line_list import LineList, ShownLine, text_line


class Page(LineList):
    """One page of the view; `title` is its tab."""

    title: ClassVar[str] = ""
    empty: ClassVar[str] = "nothing here"
    """The line of a page without rows, with the next step."""

    @property
    def picture(self) -> Picture:
        found: Picture = self.app.picture  # type: ignore[attr-defined]
        return found

    def take(self, news: News) -> None:
        """Show what changed; called for every news, also while the page is hidden."""

    def badge(self) -> str:
        """A number behind the title of the tab, such as open questions; empty for none."""
        return ""

    def chosen_task(self) -> str:
        """The task that the actions are about; empty if there is none."""
        return ""

    def chosen_agent(self) -> str:
        """The agent that the actions are about; empty if it is the one of the chosen task."""
        return ""

    def nothing(self) -> list[ShownLine]:
        return [text_line(self.empty, "muted")]
