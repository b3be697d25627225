"""Bounds the connections of a server: their number, and the time that one may stay silent."""

import asyncio
import logging
import time

log = logging.getLogger(__name__)

WARN_EVERY_S = 60.0


class ConnectionLimit:
    """Ends connections that send no request in time, and the oldest of them when there are many.

    A connection with a request is never ended here. A client that sends its request at once is
    served even while others connect by the thousand.
    """

    def __init__(self, name: str, *, most: int, silent_s: float) -> None:
        self.name = name
        self.most = most
        self.silent_s = silent_s
        self._silent: dict[asyncio.Transport, asyncio.TimerHandle] = {}
        self._serving: set[asyncio.Transport] = set()
        self._ended = 0
        self._warned_at = -WARN_EVERY_S

    def __len__(self) -> int:
        return len(self._silent) + len(self._serving)

    def enter(self, transport: asyncio.Transport) -> None:
        """Count a new connection; if there are too many, the oldest silent one is ended."""
        loop = asyncio.get_running_loop()
        self._silent[transport] = loop.call_later(self.silent_s, self._end, transport)
        if len(self) > self.most:
            self._end(next(iter(self._silent)))

    def serve(self, transport: asyncio.Transport) -> None:
        """Keep a connection that has sent its request, for as long as the answer takes."""
        if timer := self._silent.pop(transport, None):
            timer.cancel()
            self._serving.add(transport)

    def leave(self, transport: asyncio.Transport) -> None:
        self._serving.discard(transport)
        if timer := self._silent.pop(transport, None):
            timer.cancel()

    def _end(self, transport: asyncio.Transport) -> None:
        self.leave(transport)
        transport.abort()
        self._ended += 1
        if time.monotonic() - self._warned_at >= WARN_EVERY_S:
            self._warned_at = time.monotonic()
            log.warning("%s: closed %d connections without a request", self.name, self._ended)
            self._ended = 0
