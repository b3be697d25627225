"""The view itself: pages on the left, the chosen task on the right, news from the reader."""

import gc
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import ContentSwitcher, Input

from crew.front.tui.actions.action_app import ActionApp
from crew.front.tui.board.filter_bar import FilterBar
from crew.front.tui.board.status_line import status_spans
from crew.front.tui.board.view_choices import ViewChoices, chosen_spans
from crew.front.tui.live.picture import News
from crew.front.tui.live.reader_thread import ReaderThread
from crew.front.tui.pages.page import Page
from crew.front.tui.pages.task_page import TaskPage
from crew.front.tui.panes.pane import Pane
from crew.front.tui.view_parts import PAGES, PANES
from crew.front.tui.widgets.line_bar import LineBar
from crew.front.tui.widgets.line_list import LineList
from crew.front.tui.widgets.safe_text import Span, safe

WIDE = 110
"""From this width on, the chosen task is beside the list; in a narrower view, in its place."""

PLACE = "-place"
"""The end of the id of a page's place, which has the page and the content below it."""


def place_of(page: type[Page]) -> str:
    return f"{page.__name__}{PLACE}"


class NewsCame(Message):
    """The reader has news; it waits in the view."""


class CrewView(ActionApp):
    """The terminal view of one crew."""

    CSS = """
    #left { width: 1fr; }
    #right { width: 1fr; display: none; border-left: solid $panel; }
    .wide #left { width: 3fr; }
    .wide #right { width: 2fr; display: block; }
    .detail #right { display: block; }
    .detail.narrow #left { display: none; }
    .wide.zoomed #left { display: none; }
    #pages, #panes { height: 1fr; }
    #crew { height: auto; max-height: 6; border-top: solid $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "next_pane", "detail"),
        Binding("l,right", "look_at_task", "detail", show=False),
        Binding("h,left,escape", "leave_task", "back", show=False),
        Binding("tab", "next_page(1)", "next page", show=False, priority=True),
        Binding("shift+tab", "next_page(-1)", "previous page", show=False, priority=True),
    ]

    def __init__(
        self, root: Path, *, choices: ViewChoices | None = None, is_dark: bool | None = None
    ) -> None:
        super().__init__(root, choices=choices, is_dark=is_dark)
        self._wanted_task = self._kept_filter = ""
        self._news: News | None = None
        self._news_lock = threading.Lock()
        self._reader = ReaderThread(root, self._hand_over)

    # Layout

    def compose(self) -> ComposeResult:
        yield LineBar(id="tabs")
        with Horizontal():
            with Vertical(id="left"):
                with ContentSwitcher(id="pages", initial=place_of(PAGES[0])):
                    for page in PAGES:
                        shown = page(id=page.__name__)
                        yield Vertical(shown, *shown.below(), id=place_of(page))
                yield FilterBar(id="filter")
                yield LineBar(id="choices")
            with Vertical(id="right"):
                yield LineBar(id="pane-title")
                with ContentSwitcher(id="panes", initial=_pane_of(self.choices.panel)):
                    yield from (pane(id=pane.__name__) for pane in PANES)
        yield LineBar(id="status")
        yield LineBar(id="keys")

    def on_mount(self) -> None:
        self.bind_actions()
        self._reader.start()
        self.set_interval(0.1, self._tick)
        self.set_interval(5.0, self._paint_bars)
        self._go_into(self.page)

    def on_unmount(self) -> None:
        self._reader.stop()
        self._memory.close()

    def on_resize(self) -> None:
        is_wide = self.size.width >= WIDE
        self.screen_stack[0].set_class(is_wide, "wide")
        self.screen_stack[0].set_class(not is_wide, "narrow")
        self._paint_bars()

    def _go_into(self, lines: LineList) -> None:
        """Give a list the focus at once: Textual would do it later, after the next key."""
        self.screen_stack[0].set_focus(lines)

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
        """The task of the pane that the person is in, or else the one under the cursor."""
        pane = self.pane
        is_inside = self.screen_stack[0].focused is pane
        return (pane.task_id if is_inside else "") or self.page.chosen_task()

    @property
    def is_pane_visible(self) -> bool:
        return self.screen_stack[0].has_class("wide") or self.screen_stack[0].has_class("detail")

    @property
    def _is_ending(self) -> bool:
        """Whether the parts of the view are being taken down."""
        return not (self.is_running and self.screen_stack)

    # News

    def _hand_over(self, news: News) -> None:
        """Called in the reader's thread; news that the view has no time for yet become one."""
        with self._news_lock:
            is_first = self._news is None
            self._news = news if self._news is None else news.after(self._news)
        if is_first and self.is_running:
            self.post_message(NewsCame())

    def on_news_came(self) -> None:
        with self._news_lock:
            news, self._news = self._news, None
        if news is None or self._is_ending:
            return
        self.picture = news.picture
        if news.fresh:
            self.call_after_refresh(gc.freeze)  # a later collection need not look at all of it
        for page in self.screen_stack[0].query(Page):
            page.take(news)
        self._go_on()
        if self.is_pane_visible:
            self._open_pane(news)
        self._paint_bars()

    def _open_pane(self, news: News | None = None) -> None:
        pane, task = self.pane, self.chosen_task
        if pane.task_id != task:
            pane.open_task(task)
        elif news is not None:
            pane.take(news)

    def on_line_list_moved(self, message: LineList.Moved) -> None:
        if not self._is_ending and message.lines is self.page and self.is_pane_visible:
            self._open_pane()
            self._paint_bars()

    def _tick(self) -> None:
        if not self._is_ending and len(self.screen_stack) == 1 and self.is_pane_visible:
            self.pane.tick()

    def _paint_bars(self) -> None:
        if self._is_ending:
            return
        base = self.screen_stack[0]
        base.query_one("#tabs", LineBar).show(self._tabs())
        base.query_one("#status", LineBar).show(status_spans(self.picture))
        base.query_one("#pane-title", LineBar).show(self.pane.title_spans())
        base.query_one("#keys", LineBar).show(self._keys())
        chosen = chosen_spans(self.choices)
        base.query_one("#choices").display = bool(chosen)
        base.query_one("#choices", LineBar).show(chosen)

    def _tabs(self) -> list[Span]:
        spans: list[Span] = [(" crew ", "bold"), (safe(self.root.name), "muted"), ("  ", "")]
        for page in PAGES:
            shown = self.screen_stack[0].query_one(f"#{page.__name__}", Page)
            badge = f" {shown.badge()}" if shown.badge() else ""
            spans.append((f" {page.title}{badge} ", "reverse" if shown is self.page else "muted"))
        return spans

    def _keys(self) -> list[Span]:
        shown = (("?", "help"), ("space", "menu"), (":", "command"), ("/", "filter"), ("n", "new"))
        spans: list[Span] = []
        for key, words in (*shown, ("q", "quit")):
            spans += [(f" {key}", "key"), (f" {words} ", "muted")]
        return spans

    # Pages and panes

    def action_next_page(self, by: int) -> None:
        names = [page.__name__ for page in PAGES]
        self.show_page(names[(names.index(type(self.page).__name__) + by) % len(names)])

    def show_page_if_any(self, name: str) -> bool:
        """Go to a page, if the view has it."""
        is_there = any(page.__name__ == name for page in PAGES)
        if is_there:
            self.show_page(name)
        return is_there

    def show_page(self, name: str) -> None:
        self.query_one("#pages", ContentSwitcher).current = f"{name}{PLACE}"
        self.page.catch_up()
        self._go_into(self.page)
        if self.is_pane_visible:
            self._open_pane()
        self._paint_bars()

    def action_next_pane(self) -> None:
        if not self.is_pane_visible:
            self.action_look_at_task()
            return
        names = [pane.__name__ for pane in PANES]
        at = names.index(self.query_one("#panes", ContentSwitcher).current or names[0])
        self.show_pane(names[(at + 1) % len(names)])
        self.remember(panel=_panel_of(type(self.pane)))

    def show_pane(self, name: str) -> None:
        """Show the task in another pane, if the view has it."""
        switcher = self.query_one("#panes", ContentSwitcher)
        if name not in {pane.__name__ for pane in PANES} or name == switcher.current:
            return
        task, had_focus = self.chosen_task, self.pane.has_focus
        self.pane.leave()
        switcher.current = name
        self.pane.open_task(task)
        if had_focus:
            self._go_into(self.pane)
        self._paint_bars()

    def action_look_at_task(self) -> None:
        if not self.chosen_task:
            return
        self.screen_stack[0].add_class("detail")
        self._open_pane()
        self._go_into(self.pane)
        self._paint_bars()

    def action_leave_task(self) -> None:
        """Back to the list; from the list itself, back to all tasks."""
        base = self.screen_stack[0]
        if self.page.has_focus and not base.has_class("detail"):
            self.change_choices(filter="")
        base.remove_class("detail", "zoomed")
        self._go_into(self.page)
        if self.is_pane_visible:
            self.call_after_refresh(self._open_pane)

    def on_pane_retitled(self) -> None:
        if self.is_running:
            self._paint_bars()

    # What the board shows

    def go_to_task(self, task: str) -> None:
        """Put the cursor on a task, as soon as it is shown."""
        self._wanted_task = task
        self._go_on()

    def _go_on(self) -> None:
        if self._wanted_task in self.picture.items:
            self.page.move_to_key(self._wanted_task)
            self._wanted_task = ""

    def change_choices(self, **changes: Any) -> None:
        """Show the board in another way, and keep it for the next time."""
        self.remember(**changes)
        self._list_tasks()

    def look_at_namespace(self, name: str) -> None:
        self.choices = replace(self.choices, namespace=name)
        self._reader.look_at(name)
        self._paint_bars()

    def _list_tasks(self) -> None:
        self.query_one(f"#{TaskPage.__name__}", TaskPage).list_again()
        self._paint_bars()

    def open_filter(self) -> None:
        """Let the person type the filter; the board follows each letter."""
        self.show_page(TaskPage.__name__)
        self._kept_filter = self.choices.filter
        self.query_one(FilterBar).open(self.choices.filter)

    def on_input_changed(self, event: Input.Changed) -> None:
        if isinstance(event.input, FilterBar) and event.input.display:
            self.choices = replace(self.choices, filter=event.value)
            self._list_tasks()

    def on_filter_bar_stepped(self, message: FilterBar.Stepped) -> None:
        self.page.action_move(message.by)

    def on_filter_bar_closed(self, message: FilterBar.Closed) -> None:
        self.query_one(FilterBar).display = False
        # The letters on the way were shown, not kept.
        self.choices = replace(self.choices, filter=self._kept_filter)
        self.change_choices(filter=message.text.strip())
        self._go_into(self.page)


def _panel_of(pane: type[Pane]) -> str:
    """The name of a pane in the config: `description` for `DescriptionPane`."""
    return pane.__name__.removesuffix("Pane").lower()


def _pane_of(panel: str) -> str:
    """The pane of this name, or else the first one."""
    found = (pane.__name__ for pane in PANES if _panel_of(pane) == panel)
    return next(found, PANES[0].__name__)
