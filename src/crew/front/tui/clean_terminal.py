"""Gives the terminal back as it was, whatever ends the view: a signal, a fault, a hang."""

import contextlib
import os
import signal
import sys
import termios
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

ENDS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)

PATIENCE_S = 3.0
"""How long a signal waits for the view to leave by itself."""

RESET = (
    "\x1b[<u"  # the keyboard protocol of kitty
    "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"  # the mouse
    "\x1b[?2004l\x1b[?1004l\x1b[?2048l"  # pasted text, focus, size
    "\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[0m"  # line wrap, the other screen, the cursor, colours
)
LATE = "\x1b[?1016l"
"""Textual turns it on in some terminals and never off."""


class CleanTerminal:
    """While inside, a signal ends the view; afterwards the terminal is as it was before."""

    def __init__(self) -> None:
        self.exit_code = 0
        self._leave: Callable[[], None] = lambda: None
        self._before: list[Any] | None = None
        self._handlers: list[tuple[int, Any]] = []

    def leave_with(self, leave: Callable[[], None]) -> None:
        """What makes the view leave; called in a signal handler."""
        self._leave = leave

    def __enter__(self) -> Self:
        with contextlib.suppress(termios.error, ValueError, OSError):
            self._before = termios.tcgetattr(sys.__stdin__.fileno())  # type: ignore[union-attr]
        self._handlers = [(number, signal.signal(number, self._end)) for number in ENDS]
        return self

    def __exit__(self, *_error: object) -> None:
        if self._is_changed():
            self._reset(RESET)
        else:
            self._reset(LATE)
        for number, handler in self._handlers:
            signal.signal(number, handler)

    def _end(self, number: int, _frame: FrameType | None) -> None:
        """The first signal lets the view leave by itself; the second one does not wait for it."""
        is_second, self.exit_code = bool(self.exit_code), 128 + number
        if is_second:
            self._end_at_once()
        threading.Thread(target=self._wait_and_end, daemon=True).start()
        self._leave()

    def _wait_and_end(self) -> None:
        threading.Event().wait(PATIENCE_S)
        self._end_at_once()

    def _end_at_once(self) -> None:
        self._reset(RESET)
        os._exit(self.exit_code)

    def _is_changed(self) -> bool:
        with contextlib.suppress(termios.error, ValueError, OSError):
            now = termios.tcgetattr(sys.__stdin__.fileno())  # type: ignore[union-attr]
            return self._before is not None and now[:4] != self._before[:4]
        return False

    def _reset(self, codes: str) -> None:
        """Write past every buffer: what is in one may never be written."""
        with contextlib.suppress(OSError, ValueError):
            os.write(sys.__stderr__.fileno(), codes.encode())  # type: ignore[union-attr]
        if self._before is not None:
            with contextlib.suppress(termios.error, ValueError, OSError):
                termios.tcsetattr(sys.__stdin__.fileno(), termios.TCSANOW, self._before)  # type: ignore[union-attr]
