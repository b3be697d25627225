"""Stores what each agent does now, at most twice a second, and never loses the newest text."""

import asyncio
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from crew.store.database import Database
from crew.store.kept_values import keep_doing

EVERY_S = 0.5


@dataclass(slots=True, kw_only=True)
class LastWords:
    """`guarded` calls a function that may fail later, on the loop."""

    db: Database
    guarded: Callable[[Callable[[], None]], None]
    _unsaid: dict[str, str | None] = field(default_factory=dict)
    _pauses: dict[str, asyncio.TimerHandle] = field(default_factory=dict)

    def keep(self, agent: str, words: str) -> None:
        is_pausing = agent in self._unsaid
        self._unsaid[agent] = words
        if not is_pausing:
            self._store(agent)

    def _store(self, agent: str) -> None:
        """Store the newest text, then pause; texts that arrive in the pause are stored after it."""
        words = self._unsaid.get(agent)
        if words is None:
            self._unsaid.pop(agent, None)
            return
        self._unsaid[agent] = None
        keep_doing(self.db, agent, words, at=time.time())
        again = functools.partial(self.guarded, lambda: self._store(agent))
        self._pauses[agent] = asyncio.get_running_loop().call_later(EVERY_S, again)

    def leave(self) -> None:
        for pause in self._pauses.values():
            pause.cancel()
