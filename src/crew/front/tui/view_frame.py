"""What every view has: colours for light and dark, a clean end after a fault, and Ctrl-Z."""

from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from crew.front.tui.widgets.line_list import LineList
from crew.front.tui.widgets.paint import Palette, paint_without_colours

_THEMES = {True: "textual-dark", False: "textual-light"}
"""Textual's themes by whether they are dark."""


class ViewFrame(App[Any]):
    """A full-screen view; `fault` is what ended it, if that was an error."""

    TITLE = "crew"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", "quit", show=False),
        Binding("ctrl+z", "suspend_process", "suspend", show=False),
        Binding("T", "change_theme", "light or dark", show=False),
    ]

    def __init__(self, *, is_dark: bool = True) -> None:
        super().__init__()
        paint_without_colours(self)
        self.fault: Exception | None = None
        self.palette = Palette(dark=is_dark, coloured=not self.no_color)
        self.theme = _THEMES[is_dark]

    def on_mount(self) -> None:
        # After `fg` the terminal shows an empty screen.
        self.app_resume_signal.subscribe(self, lambda _app: self.refresh(layout=True))

    def _handle_exception(self, error: Exception) -> None:
        """End with the first fault; it is printed in one sentence once the terminal is free.

        While the view closes, its parts vanish one by one: a missing part is then no fault.
        """
        if self._exit or (self._is_mounted and not self.is_running):
            return
        self.fault = self.fault or error
        if self._exception is None:  # a test in front of the view waits for it
            self._exception = error
            self._exception_event.set()
        self._return_code = 1
        self._close_messages_no_wait()

    def action_change_theme(self) -> None:
        is_dark = not self.current_theme.dark
        self.theme = _THEMES[is_dark]
        self.palette = Palette(dark=is_dark, coloured=not self.no_color)
        for lines in self.screen_stack[0].query(LineList):
            lines.redraw()
        self.refresh(layout=True)
