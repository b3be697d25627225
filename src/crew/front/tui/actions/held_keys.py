"""Holds keys back while an action opens, so that fast typing reaches the dialog it is meant for.

Textual sends each key on its own way through the widgets. Without this, `:rm 3` typed at once
would open the palette with the first key and merge a task with the third.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from textual.widget import Widget

LONGEST_HOLD_S = 2.0
"""An action that takes longer to show its dialog no longer holds keys."""

_holder: ContextVar[object] = ContextVar("the action that this code belongs to", default=None)


@contextmanager
def held_by(holder: object) -> Iterator[None]:
    """Everything inside belongs to this action, including its dialogs."""
    before = _holder.set(holder)
    try:
        yield
    finally:
        _holder.reset(before)


def current_holder() -> object:
    return _holder.get()


class HeldKeys:
    """Keys pass unless an action is between its start, or a decision, and what it shows next.

    That is a dialog, a command in the background, or its end.
    """

    def __init__(self) -> None:
        self._holders: set[object] = set()
        self._may_pass = asyncio.Event()
        self._may_pass.set()

    def hold(self, holder: object) -> None:
        self._holders.add(holder)
        self._may_pass.clear()

    def let_pass(self, holder: object) -> None:
        self._holders.discard(holder)
        if not self._holders:
            self._may_pass.set()

    async def passed(self) -> None:
        """Wait until keys may pass."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_HOLD_S):
                await self._may_pass.wait()
        self._holders.clear()


async def taken_by(field: Widget) -> None:
    """Wait until a field has the keys before this one: enter must not overtake what was typed."""
    taken = asyncio.Event()
    field.call_later(taken.set)
    with suppress(TimeoutError):
        async with asyncio.timeout(LONGEST_HOLD_S):
            await taken.wait()
