"""Locks of our own, held by the open file: they end with the last process that has it open."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crew.domain.kernel.errors import Conflict


@contextmanager
def held(lock: Path, *, wait: bool = True) -> Iterator[int]:
    """Hold the lock; give the descriptor to git as `keep_open`, and it holds the lock as well."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _take(descriptor, lock, wait=wait)
        yield descriptor
        # Closing alone is not enough: a process that another thread is starting shares it. After
        # an error it is, for what a git that was ended has left behind still holds the lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _take(descriptor: int, lock: Path, *, wait: bool) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Conflict(
            f"another crew process holds {lock.name}", hint="let it finish and try again"
        ) from None
