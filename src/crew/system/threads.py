"""Work that no cancellation cuts short: threads, and what must be cleaned up."""

import asyncio
import contextvars
import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run it off the loop: a call of git that is under way must not be left half done."""
    call = functools.partial(contextvars.copy_context().run, function, *args, **kwargs)
    return await even_if_cancelled(asyncio.get_running_loop().run_in_executor(None, call))


async def even_if_cancelled(work: Awaitable[R]) -> R:
    """Await the work until it has ended; a cancellation that came meanwhile follows then."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()
