"""The base of all pages: a list that follows the crew, and the task that its cursor is on."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.widget import Widget

from crew.front.tui.live.picture import News, Picture
from crew.front.tui.widgets.line_list import LineList, ShownLine, text_line

if TYPE_CHECKING:
    from crew.front.tui.view_app import CrewView


class Page(LineList):
    """One page of the view; `title` is its tab.

    `kinds` are the kinds of rows that it is made from. A page out of sight is not made again until
    it comes into sight.
    """

    title: ClassVar[str] = ""
    kinds: ClassVar[tuple[str, ...]] = ()
    empty: ClassVar[str] = "nothing here"
    """The line of a page without rows, with the next step."""

    _is_stale = True

    @property
    def view(self) -> "CrewView":
        return self.app  # type: ignore[return-value]

    @property
    def picture(self) -> Picture:
        return self.view.picture

    def below(self) -> Iterable[Widget]:
        """The content of the page below the list."""
        return ()

    def take(self, news: News) -> None:
        """Show what changed; called for all news, even while the page is hidden."""
        if self.concerns(news):
            self._is_stale = True
            self.catch_up()

    def concerns(self, news: News) -> bool:
        return news.about(*self.kinds)

    def catch_up(self) -> None:
        """Make the list again if something changed and the page is in sight."""
        if self._is_stale and self.is_in_sight:
            self._is_stale = False
            self.list_again()

    def list_again(self) -> None:
        """Make the list again."""

    @property
    def is_in_sight(self) -> bool:
        above = [one for one in self.ancestors_with_self if isinstance(one, Widget)]
        return self.is_mounted and self.app.is_running and all(one.display for one in above)

    def on_show(self) -> None:
        self.catch_up()

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
