"""Pauses new work while a disk is full, and continues by itself once there is room."""

from collections.abc import Callable
from dataclasses import dataclass

from crew.domain.rules import Rules

LONGEST_S = 30.0


@dataclass(slots=True, kw_only=True)
class DiskPause:
    """`until` is when to try again. `noted` gets the reason, or an empty text when it is over."""

    noted: Callable[[str], None] = lambda _reason: None
    until: float | None = None
    _tries: int = 0

    def begin(self, reason: str, rules: Rules, *, now: float) -> None:
        """Pause, longer each time in a row; a pause under way is left as it is."""
        if self.until is not None and now < self.until:
            return
        self._tries += 1
        self.until = now + min(rules.backoff(self._tries), LONGEST_S)
        self.noted(reason)

    def end(self) -> None:
        """There is room: a command succeeded, or the time came and there was none to try."""
        if self.until is not None:
            self.until, self._tries = None, 0
            self.noted("")
