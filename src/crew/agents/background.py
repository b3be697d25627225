"""What goes on beside a program's turn, waiting for somebody; it ends with the program."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Self


class Background:
    """Pieces of work by name; leaving the block ends those that are left.

    A failure of one of them is the failure of the block, unless that has one of its own.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._tasks[name] = asyncio.ensure_future(work)

    def cancel(self, name: str) -> None:
        """Also of one that is over, or was never there."""
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
