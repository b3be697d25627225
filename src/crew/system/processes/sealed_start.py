"""Starts sandboxes from a thread that is sealed, so that the seal costs a start next to nothing.

The thread lives as long as this process: bubblewrap ends its programs when the thread ends that
started it.
"""

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from crew.system.sandbox.seal import seal_thread

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

R = TypeVar("R")


def sealed(start: Callable[[], R]) -> R:
    """Run this in the sealed thread, and wait for it."""
    return _thread()[0].submit(start).result()


def closed_by_seal() -> frozenset[str]:
    """What the kernel closes to programs that are started there."""
    return _thread()[1]


@functools.cache
def _thread() -> "tuple[ThreadPoolExecutor, frozenset[str]]":
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - many commands start nothing

    os.register_at_fork(after_in_child=_thread.cache_clear)  # a fork has this thread no more
    pool = ThreadPoolExecutor(1, thread_name_prefix="crew-sealed")
    return pool, pool.submit(seal_thread).result()
