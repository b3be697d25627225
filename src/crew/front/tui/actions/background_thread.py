"""Runs slow work in a thread that does not keep the view from ending."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


async def in_background(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Its result, or its error. If the view ends first, the thread ends with the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[R] = loop.create_future()

    def settle(result: R | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type] # R may itself be None

    def work() -> None:
        result: R | None = None
        error: BaseException | None = None
        try:
            result = function(*args, **kwargs)
        except Exception as found:  # noqa: BLE001 - it is raised where the result is awaited
            error = found
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name=f"crew-{function.__name__}", daemon=True).start()
    return await done
