"""Looks names up, in a few threads of its own: a slow name server holds up no other work."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable

Lookup = Callable[[str, int], Awaitable[tuple[str, ...]]]
"""The addresses of a name; raises an OSError if there is none."""

AT_ONCE = 8
WITHIN_S = 20.0


class NameLookup:
    """Looks names up on this machine. A lookup that hangs ends with the process."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, name: str, port: int) -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        async with self._free:
            found: asyncio.Future[tuple[str, ...]] = loop.create_future()
            # Not of a pool: its threads would be waited for at the end of the process.
            thread = threading.Thread(target=_look_up, args=(loop, found, name, port), daemon=True)
            thread.start()
            async with asyncio.timeout(WITHIN_S):
                return await found


def _look_up(
    loop: asyncio.AbstractEventLoop, found: "asyncio.Future[tuple[str, ...]]", name: str, port: int
) -> None:
    result: tuple[str, ...] | OSError
    try:
        answers = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        result = tuple(dict.fromkeys(str(answer[4][0]) for answer in answers))
    except (OSError, UnicodeError) as error:
        result = OSError(f"{name} has no address: {error}")
    try:
        loop.call_soon_threadsafe(_settle, found, result)
    except RuntimeError:  # the loop has ended meanwhile
        return


def _settle(found: "asyncio.Future[tuple[str, ...]]", result: tuple[str, ...] | OSError) -> None:
    if found.done():
        return
    if isinstance(result, OSError):
        found.set_exception(result)
    else:
        found.set_result(result)
