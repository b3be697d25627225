"""The channels: the order of turns, the conversation of the chosen one, and a line to speak."""

import time
from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from crew.front.cli.channels.channel_command import person
from crew.front.tui.board.channel_lines import (
    ChannelLine,
    channel_lines,
    conversation,
    open_channels,
)
from crew.front.tui.pages.sheet_page import SheetPage
from crew.front.tui.widgets.line_list import LineList, ShownLine

AGE_EVERY_S = 1.0


class SayLine(Input):
    """The line in which a person speaks; escape leaves it."""

    DEFAULT_CSS = """
    SayLine { height: 1; border: none; padding: 0 1; }
    SayLine:focus { border: none; }
    """


class ChannelPage(SheetPage):
    """The open channels; enter or t begins to speak in the chosen one."""

    title: ClassVar[str] = "Channels"
    empty: ClassVar[str] = "no open channels: :channel new NAME --member AGENT opens one"
    kinds: ClassVar[tuple[str, ...]] = ("channel", "member", "post")
    DEFAULT_CSS = "ChannelPage { height: auto; min-height: 3; max-height: 40%; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,t", "speak", "speak", show=False)]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._say = SayLine(placeholder=f"t: speak here as {person()}")
        self._say.can_focus = False

    def below(self) -> Iterable[Widget]:
        return (*super().below(), _Speech(self, self._say))

    def on_mount(self) -> None:
        self.set_interval(AGE_EVERY_S, self._grow_older)

    def _grow_older(self) -> None:
        if self.is_in_sight:
            self.list_again()

    def list_again(self) -> None:
        rows = channel_lines(self.picture.world, now=time.time())
        if not rows:
            self.show(self.nothing())
        elif rows != list(self.rows):
            self.show(rows, _line_of, key_of=lambda row: row.key)
        self.tell()

    def badge(self) -> str:
        return str(len(open_channels(self.picture.world)) or "")

    @property
    def channel(self) -> str:
        """The id of the chosen channel; empty if there is none."""
        row = self.cursor_row
        return row.channel if isinstance(row, ChannelLine) else ""

    def chosen_task(self) -> str:
        found = self.picture.world.channels.get(self.channel)
        return found.task if found else ""

    def on_line_list_chosen(self, message: LineList.Chosen) -> None:
        if message.lines is self:
            message.stop()
            self.action_speak()

    def tell(self) -> None:
        world, name, now = self.picture.world, self.channel, time.time()
        self._say.display = bool(name)
        is_new = self.is_another(name)
        self.sheet.tell(lambda width: conversation(world, name, width, now=now), is_new=is_new)
        if is_new:
            self.sheet.follow()

    # Speaking

    def action_speak(self) -> None:
        if self.channel:
            self._say.can_focus = True
            self._say.focus()

    def leave_speech(self) -> None:
        self._say.can_focus = False
        self.focus()

    def speak(self, words: str) -> None:
        name = self.channel
        if words.strip() and name:
            self._say.value = ""
            post = self.view.command("channel", "say", "--", name, "-", stdin=words)
            self.app.run_worker(post, exit_on_error=False)


class _Speech(Widget):
    """The place of the input line: it sends what is written, and escape leads back to the list."""

    DEFAULT_CSS = "_Speech { height: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "back", show=False)]

    def __init__(self, page: ChannelPage, line: SayLine) -> None:
        super().__init__(line)
        self._page = page

    def on_input_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self._page.speak(message.value)

    def action_leave(self) -> None:
        self._page.leave_speech()


def _line_of(row: ChannelLine, _width: int) -> ShownLine:
    return row.line
