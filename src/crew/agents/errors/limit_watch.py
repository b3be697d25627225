"""Ends a step whose CLI repeats a request at a rate limit for minutes and reports no event.

Such a CLI writes only to stderr. A short limit ends meanwhile; a longer one pauses the provider, so
that the agent is free and a person sees it. An empty account looks the same, and no wait fills it.
"""

import time
from collections.abc import Callable

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.text import LineSplitter, one_line
from crew.domain.rows.step import LASTING, ErrorKind, StepError
from crew.system.processes.pipes import Talk
from crew.system.processes.process import ProcessEnd

PATIENCE_S = 20.0


@frozen
class LimitSeen:
    """A rate limit in a line of stderr, or an empty account.

    `words` is empty in a line that continues another one; `ends_in_s` is None if the line does not
    tell.
    """

    words: str
    ends_in_s: float | None = None
    kind: ErrorKind = ErrorKind.RATE_LIMIT


class LimitWatch:
    """Watches one run of a program. `talk` is its input, and ends it.

    `find` returns the rate limit that a line of stderr reports; None for any other line.
    """

    def __init__(self, talk: Talk, find: Callable[[str], LimitSeen | None]) -> None:
        self._talk = talk
        self._find = find
        self._lines = LineSplitter()
        self._words = ""
        self._kind = ErrorKind.RATE_LIMIT
        self._ends_at: float | None = None

    def take_stderr(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk):
            if seen := self._find(line):
                self._limited(seen)

    def has_event(self) -> None:
        """The program reports an event: its request was answered."""
        if self._words:
            self._words, self._ends_at = "", None
            self._talk.close()

    def error(self, end: ProcessEnd) -> StepError | None:
        """The limit for which crew ended the program; None if there was none."""
        if not self._words or end.reason != "lingered":
            return None
        return StepError(kind=self._kind, message=self._words, reset_at=self._ends_at)

    def _limited(self, seen: LimitSeen) -> None:
        if not (seen.words or self._words):
            return
        if seen.kind in LASTING:
            self._talk.close(linger_s=0.0)
        elif not self._words:
            self._talk.close(linger_s=PATIENCE_S)
        self._kind = seen.kind
        self._words = one_line(seen.words, limit=300) or self._words
        self._ends_at = None if seen.ends_in_s is None else time.time() + seen.ends_in_s
