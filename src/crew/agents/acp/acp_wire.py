"""Carries messages between the Agent Client Protocol's SDK and a step's process.

It handles the agent's updates itself, in their order, so that the SDK cannot fail on an update of a
kind that it does not know yet.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from crew.agents.event_fields import Event, mapping
from crew.agents.event_stream import EventLines
from crew.system.processes.pipes import Talk

LONGEST_MESSAGE = 1 << 24


class Wire:
    """A transport. `send` and `receive` are the SDK's side, `take` and `talk` the process's."""

    def __init__(self, on_update: Callable[[Event], None]) -> None:
        self.talk = Talk()
        self._on_update = on_update
        self._lines = EventLines(LONGEST_MESSAGE)
        self._messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def take(self, chunk: bytes) -> None:
        for message in self._lines.feed(chunk):
            self._pass_on(message)

    def end(self) -> None:
        """End both directions."""
        for message in self._lines.close():
            self._pass_on(message)
        self.talk.end()
        self._messages.put_nowait(None)

    async def send(self, message: dict[str, Any]) -> None:
        self.talk.send(json.dumps(message).encode() + b"\n")
        await self.talk.taken()

    async def receive(self) -> dict[str, Any] | None:
        return await self._messages.get()

    async def close(self) -> None:
        pass

    def _pass_on(self, message: Event) -> None:
        if "id" in message:
            self._messages.put_nowait(dict(message))
        elif message.get("method") == "session/update":
            self._on_update(mapping(message, "params"))
