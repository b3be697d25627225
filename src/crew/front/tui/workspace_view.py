"""The view over several repositories: repositories, the tasks of one, and the chosen task."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message

from crew.config.workspaces import Workspace, load_workspaces
from crew.front.tui.board.board_order import BoardLine, board_lines
from crew.front.tui.board.kept_results import by_identity
from crew.front.tui.board.status_line import status_spans
from crew.front.tui.board.task_cells import BoardWidths, board_line, board_widths
from crew.front.tui.board.task_columns import columns_of
from crew.front.tui.board.view_choices import ViewChoices
from crew.front.tui.live.picture import News, Picture
from crew.front.tui.live.reader_thread import ReaderThread
from crew.front.tui.panes.description_pane import DescriptionPane
from crew.front.tui.view_frame import ViewFrame
from crew.front.tui.widgets.line_bar import LineBar
from crew.front.tui.widgets.line_list import LineList, ShownLine, text_line
from crew.front.tui.widgets.paint import fit
from crew.front.tui.widgets.safe_text import Span, safe
from crew.runner.views.row_views import open_question_views

LOOK_EVERY_S = 0.2
AGE_EVERY_S = 1.0
WIDE = 110
PANES = ("repositories", "tasks", "detail")

_open_entries = by_identity(open_question_views)


class RepositoryNews(Message):
    """The reader of one repository has news."""

    def __init__(self, name: str, news: News) -> None:
        super().__init__()
        self.name = name
        self.news = news


class WorkspaceView(ViewFrame):
    """Shows all repositories of a person; it ends with the one that the person opens."""

    CSS = """
    #repositories { width: 30%; min-width: 24; border-right: solid $panel; }
    #tasks { width: 1fr; }
    #detail { width: 1fr; border-left: solid $panel; display: none; }
    .wide #detail { display: block; }
    .narrow.detailed #detail { display: block; }
    .narrow.detailed #tasks { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("tab", "next_pane(1)", "next pane", show=False, priority=True),
        Binding("shift+tab", "next_pane(-1)", "previous pane", show=False, priority=True),
        Binding("l,right", "next_pane(1)", "next pane", show=False),
        Binding("h,left", "next_pane(-1)", "previous pane", show=False),
        Binding("enter", "open", "open"),
    ]

    def __init__(
        self, workspaces: Sequence[Workspace], *, at: str = "", is_dark: bool = True
    ) -> None:
        super().__init__(is_dark=is_dark)
        self._workspaces = {one.name: one for one in workspaces}
        self._pictures = {one.name: Picture() for one in workspaces}
        self._at = at
        self._widths = BoardWidths()
        self._readers = [
            ReaderThread(one.path, partial(self._hand_over, one.name), every_s=LOOK_EVERY_S)
            for one in workspaces
        ]

    def compose(self) -> ComposeResult:
        yield LineBar(id="tabs")
        with Horizontal():
            yield LineList(id="repositories")
            yield LineList(id="tasks")
            yield DescriptionPane(id="detail")
        yield LineBar(id="status")
        yield LineBar(id="keys")

    def on_mount(self) -> None:
        for reader in self._readers:
            reader.start()
        self.set_interval(AGE_EVERY_S, self._grow_older)
        repositories = self.query_one("#repositories", LineList)
        repositories.show(list(self._workspaces), self._repository_line, key_of=str)
        repositories.focus()
        if self._at:
            repositories.move_to_key(self._at)
        self._list_tasks()

    def on_unmount(self) -> None:
        for reader in self._readers:
            reader.stop()

    def on_resize(self) -> None:
        is_wide = self.size.width >= WIDE
        self.screen.set_class(is_wide, "wide")
        self.screen.set_class(not is_wide, "narrow")

    # News

    def _hand_over(self, name: str, news: News) -> None:
        """Called in the thread of a reader."""
        if self.is_running:
            self.post_message(RepositoryNews(name, news))

    def on_repository_news(self, message: RepositoryNews) -> None:
        if not self.is_running:
            return
        self._pictures[message.name] = message.news.picture
        self.query_one("#repositories", LineList).freshen()
        if message.name == self.chosen:
            if message.news.tasks_changed or message.news.about("task"):
                self._list_tasks()
            else:
                self.query_one("#tasks", LineList).freshen()
            self._open_task(message.news)

    def _grow_older(self) -> None:
        if not self.is_running:
            return
        self.query_one("#repositories", LineList).freshen()
        self.query_one("#tasks", LineList).freshen()

    # What is chosen

    @property
    def chosen(self) -> str:
        """The name of the repository under the cursor."""
        return self.query_one("#repositories", LineList).cursor_key

    @property
    def picture(self) -> Picture:
        return self._pictures.get(self.chosen) or Picture()

    @property
    def root(self) -> Path:
        return self._workspaces[self.chosen].path

    @property
    def chosen_task(self) -> str:
        row = self.query_one("#tasks", LineList).cursor_row
        return row.task if isinstance(row, BoardLine) else ""

    def on_line_list_moved(self, message: LineList.Moved) -> None:
        if message.lines.id == "repositories":
            self._list_tasks()
        elif message.lines.id == "tasks":
            self._open_task()

    def on_line_list_chosen(self, message: LineList.Chosen) -> None:
        if message.lines.id != "detail":
            self.action_open()

    # Drawing

    def _repository_line(self, name: str, width: int) -> ShownLine:
        shown = fit(safe(name), max(6, min(16, width - 14)))
        return ShownLine(spans=tuple(repository_spans(shown, self._pictures[name])), key=name)

    def _list_tasks(self) -> None:
        tasks, picture = self.query_one("#tasks", LineList), self.picture
        rows = board_lines(picture, ViewChoices())
        if rows:
            self._widths = board_widths(picture, rows, now=time.time())
            tasks.show(rows, self._task_line, key_of=lambda row: row.task)
        else:
            tasks.show([text_line(_no_tasks(picture), "muted")])
        self._open_task()

    def _task_line(self, row: BoardLine, width: int) -> ShownLine:
        return board_line(self.picture, row, width, now=time.time(), widths=self._widths)

    def _open_task(self, news: News | None = None) -> None:
        pane = self.query_one("#detail", DescriptionPane)
        if news is not None and pane.task_id == self.chosen_task:
            pane.take(news)
        else:
            pane.open_task(self.chosen_task)
        self._paint_bars()

    def _paint_bars(self) -> None:
        count = len(self._workspaces)
        tabs = [(" crew ", "bold"), (f"{count} repositories", "muted")]
        self.query_one("#tabs", LineBar).show(tabs)
        where = [(f" {safe(self.chosen)}: ", "bold")]
        self.query_one("#status", LineBar).show([*where, *status_spans(self.picture)])
        keys = (("enter", "open"), ("tab", "next pane"), ("q", "quit"))
        spans = [
            span for key, word in keys for span in ((f" {key}", "key"), (f" {word} ", "muted"))
        ]
        self.query_one("#keys", LineBar).show(spans)

    # Keys

    def action_next_pane(self, by: int) -> None:
        focused = (self.focused.id if self.focused else None) or PANES[0]
        name = PANES[(PANES.index(focused) + by) % len(PANES)]
        self.screen.set_class(name == "detail", "detailed")
        self.query_one(f"#{name}").focus()

    def action_open(self) -> None:
        """Open the full view of the repository; it cannot be opened while it cannot be read."""
        if self.picture.failure:
            self.notify(safe(self.picture.failure), severity="error", markup=False)
        elif self.chosen:
            self.exit(self._workspaces[self.chosen])


def repository_spans(name: str, picture: Picture) -> Iterator[Span]:
    """A repository as a line: its runner, its name, what waits for the person, its tasks."""
    if picture.failure:
        yield "! ", "bad"
        yield name, "bold"
        yield f" unreachable: {safe(picture.failure)}", "bad"
        return
    yield ("● ", "good") if picture.runner else ("○ ", "muted")
    yield name, "bold"
    if asked := len(_open_entries(picture.world)):
        yield f" ?{asked}", "warn"
    counts = columns_of(picture).counts
    for state, symbol, style in (
        ("error", "!", "bad"),
        ("in_progress", "●", "busy"),
        ("done", "✓", "note"),
        ("todo", "○", ""),
    ):
        if counts.get(state):
            yield f" {symbol}{counts[state]}", style


def _no_tasks(picture: Picture) -> str:
    return "it cannot be read now" if picture.failure else "no open tasks here"


def open_workspaces(
    show: Callable[[ViewFrame], int],
    show_crew: Callable[[Path], int],
    *,
    is_dark: bool = True,
) -> int:
    """Show all repositories until the person leaves; a repository's view leads back here."""
    at = ""
    while True:
        view = WorkspaceView(load_workspaces(), at=at, is_dark=is_dark)
        code = show(view)
        if code or view.return_value is None:
            return code
        at = view.return_value.name
        if code := show_crew(view.return_value.path):
            return code
