"""The view itself: pages on the left, the chosen task on the right, news from the reader."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import ContentSwitcher

from crew.front.tui.actions.action_table import ACTIONS, BY_NAME
from crew.front.tui.actions.carry_out import CommandReply, carry_out
from crew.front.tui.board.status_line import status_spans
from crew.front.tui.board.view_choices import ViewChoices
from crew.front.tui.dialogs.choice_dialog import Choice, ChoiceDialog
from crew.front.tui.dialogs.confirm_dialog import ConfirmDialog
from crew.front.tui.dialogs.text_dialog import TextDialog
from crew.front.tui.live.picture import News, Picture
from crew.front.tui.live.reader_thread import ReaderThread
from crew.front.tui.pages.page import Page
from crew.front.tui.panes.pane import Pane
from crew.front.tui.view_parts import PAGES, PANES
from crew.front.tui.widgets.line_bar import LineBar
from crew.front.tui.widgets.line_list import LineList
from crew.front.tui.widgets.paint import Palette, Span, safe
from crew.runner.by_hand.crew_command import run_in_person_terminal

WIDE = 110
"""From this width on, the chosen task stands beside the list; below it, in its place."""

PLACE = "-place"
"""The end of the id of a page's place, which has the page and what stands below it."""


def place_of(page: type[Page]) -> str:
    return f"{page.__name__}{PLACE}"


class NewsCame(Message):
    """The reader has news."""

    def __init__(self, news: News) -> None:
        super().__init__()
        self.news = news


class CrewView(App[None]):
    """The terminal view of one crew."""

    TITLE = "crew"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #left { width: 1fr; }
    #right { width: 1fr; display: none; border-left: solid $panel; }
    .wide #left { width: 3fr; }
    .wide #right { width: 2fr; display: block; }
    .detail #right { display: block; }
    .detail.narrow #left { display: none; }
    #pages, #panes { height: 1fr; }
    #crew { height: auto; max-height: 6; border-top: solid $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", "quit"),
        Binding("v", "next_pane", "detail"),
        Binding("l,right", "look_at_task", "detail", show=False),
        Binding("h,left,escape", "leave_task", "back", show=False),
        Binding("tab", "next_page(1)", "next page", show=False, priority=True),
        Binding("shift+tab", "next_page(-1)", "previous page", show=False, priority=True),
    ]

    def __init__(self, root: Path, *, choices: ViewChoices | None = None) -> None:
        super().__init__()
        self.root = root
        self.choices = choices or ViewChoices()
        self.picture = Picture()
        self.palette = Palette(dark=True)
        self._reader = ReaderThread(root, self._hand_over)

    # Layout

    def compose(self) -> ComposeResult:
        yield LineBar(id="tabs")
        with Horizontal():
            with Vertical(id="left"), ContentSwitcher(id="pages", initial=place_of(PAGES[0])):
                for page in PAGES:
                    shown = page(id=page.__name__)
                    yield Vertical(shown, *shown.below(), id=place_of(page))
            with Vertical(id="right"):
                yield LineBar(id="pane-title")
                with ContentSwitcher(id="panes", initial=PANES[0].__name__):
                    yield from (pane(id=pane.__name__) for pane in PANES)
        yield LineBar(id="status")
        yield LineBar(id="keys")

    def on_mount(self) -> None:
        for action in ACTIONS:
            self.bind(action.key, f"act('{action.name}')", description=action.title, show=False)
        self._reader.start()
        self.set_interval(0.1, self._tick)
        self.set_interval(1.0, self._paint_bars)
        self.page.focus()

    def on_unmount(self) -> None:
        self._reader.stop()

    def on_resize(self) -> None:
        is_wide = self.size.width >= WIDE
        self.screen.set_class(is_wide, "wide")
        self.screen.set_class(not is_wide, "narrow")
        self._paint_bars()

    # What is chosen

    @property
    def page(self) -> Page:
        base = self.screen_stack[0]
        current = base.query_one("#pages", ContentSwitcher).current or ""
        return base.query_one(f"#{current.removesuffix(PLACE)}", Page)

    @property
    def pane(self) -> Pane:
        base = self.screen_stack[0]
        return base.query_one(f"#{base.query_one('#panes', ContentSwitcher).current}", Pane)

    @property
    def chosen_task(self) -> str:
        return self.page.chosen_task()

    @property
    def is_pane_visible(self) -> bool:
        return self.screen_stack[0].has_class("wide") or self.screen_stack[0].has_class("detail")

    # News

    def _hand_over(self, news: News) -> None:
        """Called in the reader's thread."""
        if self.is_running:
            self.post_message(NewsCame(news))

    def on_news_came(self, message: NewsCame) -> None:
        if not self.is_running:
            return
        self.picture = message.news.picture
        for page in self.screen_stack[0].query(Page):
            page.take(message.news)
        if self.is_pane_visible:
            self._open_pane(message.news)
        self._paint_bars()

    def _open_pane(self, news: News | None = None) -> None:
        pane, task = self.pane, self.chosen_task
        if pane.task_id != task:
            pane.open_task(task)
        elif news is not None:
            pane.take(news)

    def on_line_list_moved(self, message: LineList.Moved) -> None:
        if message.lines is self.page and self.is_pane_visible:
            self._open_pane()
            self._paint_bars()

    def _tick(self) -> None:
        if self.is_running and self.is_pane_visible and len(self.screen_stack) == 1:
            self.pane.tick()

    def _paint_bars(self) -> None:
        if not self.is_running:
            return
        base = self.screen_stack[0]
        base.query_one("#tabs", LineBar).show(self._tabs())
        base.query_one("#status", LineBar).show(status_spans(self.picture))
        title = f" {self.pane.title}" + (f" of {self.chosen_task}" if self.chosen_task else "")
        base.query_one("#pane-title", LineBar).show(((title, "bold"), ("   v next", "muted")))
        base.query_one("#keys", LineBar).show(self._keys())

    def _tabs(self) -> list[Span]:
        spans: list[Span] = [(" crew ", "bold"), (safe(self.root.name), "muted"), ("  ", "")]
        for page in PAGES:
            shown = self.screen_stack[0].query_one(f"#{page.__name__}", Page)
            badge = f" {shown.badge()}" if shown.badge() else ""
            spans.append((f" {page.title}{badge} ", "reverse" if shown is self.page else "muted"))
        return spans

    def _keys(self) -> list[Span]:
        return [(" ?", "key"), (" help  ", "muted"), ("q", "key"), (" quit", "muted")]

    # Pages and panes

    def action_next_page(self, by: int) -> None:
        names = [page.__name__ for page in PAGES]
        self.show_page(names[(names.index(type(self.page).__name__) + by) % len(names)])

    def show_page(self, name: str) -> None:
        self.query_one("#pages", ContentSwitcher).current = f"{name}{PLACE}"
        self.page.catch_up()
        self.page.focus()
        if self.is_pane_visible:
            self._open_pane()
        self._paint_bars()

    def action_next_pane(self) -> None:
        if not self.is_pane_visible:
            self.action_look_at_task()
            return
        names = [pane.__name__ for pane in PANES]
        switcher = self.query_one("#panes", ContentSwitcher)
        self.pane.leave()
        switcher.current = names[(names.index(switcher.current or names[0]) + 1) % len(names)]
        self.pane.task_id = ""
        self._open_pane()
        self._paint_bars()

    def action_look_at_task(self) -> None:
        self.screen.add_class("detail")
        self._open_pane()
        self.pane.focus()
        self._paint_bars()

    def action_leave_task(self) -> None:
        self.screen.remove_class("detail")
        self.page.focus()

    # For actions

    def action_act(self, name: str) -> None:
        """Carry out an action of the table; dialogs wait inside it, the view does not."""
        action = BY_NAME[name]
        if action.needs_task and not self.chosen_task:
            self.notify("choose a task first", severity="warning")
            return
        self.run_worker(action.act(self), exit_on_error=False)

    async def command(self, *args: str, stdin: str = "") -> CommandReply:
        """Run a command of crew and show its refusal, or that it is done."""
        reply = await carry_out(args, directory=self.root, stdin=stdin)
        self._reader.expect_tasks()
        if reply.is_refused:
            self.notify(
                f"{safe(reply.failure)}\n{safe(reply.hint)}", severity="error", markup=False
            )
        else:
            self.notify(f"crew {args[0]}: done", markup=False)
        return reply

    async def confirm(self, question: str) -> bool:
        answer = await self.push_screen_wait(ConfirmDialog(question))
        return answer is True

    async def choose(self, title: str, choices: Sequence[Choice]) -> str | None:
        """The value that the person chooses; None for none."""
        return await self.push_screen_wait(ChoiceDialog(title, choices))

    async def write(self, title: str, *, text: str = "", several_lines: bool = False) -> str | None:
        """The text that the person writes; None if they leave."""
        return await self.push_screen_wait(
            TextDialog(title, text=text, several_lines=several_lines)
        )

    def in_terminal(self, *args: str) -> int:
        """Hand the person's terminal to a command of crew, and take it back at its end."""
        with self.suspend():
            return run_in_person_terminal(args, directory=self.root)
