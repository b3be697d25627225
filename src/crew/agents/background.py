"""Runs coroutines alongside a program's turn, such as open questions, and ends them with it."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Self


class Background:
    """Coroutines by name. The end of the block cancels the remaining ones.

    If one fails, the block raises its error, unless the block itself failed.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._tasks[name] = asyncio.ensure_future(work)

    def cancel(self, name: str) -> None:
        """Cancel one. Safe for finished or unknown names."""
        if task := self._tasks.get(name):
            task.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        failures = [one for one in ended if isinstance(one, Exception)]
        if failures and error is None:
            raise failures[0]
