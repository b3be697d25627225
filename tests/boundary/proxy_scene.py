"""The proxy of listed hosts without a runner, with a name server that follows a script."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from crew.runner.sandbox.listed_hosts import hosts_served
from crew.workplace import Workplace
from front.screen import PATIENCE_S


async def look_up(name: str, port: int) -> tuple[str, ...]:
    """A name server: every name is this machine, apart from one that leads to a private network."""
    del port
    return ("10.0.0.1",) if name == "inside.test" else ("127.0.0.1",)


@contextlib.contextmanager
def served(workplace: Workplace) -> Iterator[list]:
    """The proxy of a crew, in a thread; what it has refused."""
    refused: list = []
    ready = threading.Event()

    async def serve() -> None:
        over = asyncio.Event()
        stop.append(lambda: loop.call_soon_threadsafe(over.set))
        loop = asyncio.get_running_loop()
        async with hosts_served(workplace, refused.append, look_up):
            ready.set()
            await over.wait()

    stop: list = []
    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S)
    try:
        yield refused
    finally:
        stop[0]()
        thread.join(PATIENCE_S)
