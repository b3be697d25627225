"""Limits a log: at most `MOST_ALIKE` lines of the same kind are written in a minute."""

import logging
import time

MOST_ALIKE = 30
WINDOW_S = 60.0


class LogLimit(logging.Filter):
    """Drops lines of the same logger and text pattern above the limit; the next one counts them."""

    def __init__(self) -> None:
        super().__init__()
        self._windows: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        key, now = (record.name, str(record.msg)), time.monotonic()
        began, count = self._windows.get(key, (now, 0))
        if now - began >= WINDOW_S:
            if (left_out := count - MOST_ALIKE) > 0:
                record.msg = f"{record.getMessage()} ({left_out} more like it were left out)"
                record.args = ()
            began, count = now, 0
        self._windows[key] = began, count + 1
        return count < MOST_ALIKE
