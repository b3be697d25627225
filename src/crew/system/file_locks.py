"""File locks that end with the last process that has the file open."""

import fcntl
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crew.domain.kernel.errors import Conflict

_LOOK_EVERY_S = 0.01


@contextmanager
def held(lock: Path, *, patience_s: float = math.inf) -> Iterator[int]:
    """Hold the lock. A git that gets the descriptor as `keep_open` holds it too."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _take(descriptor, lock, patience_s=patience_s)
        yield descriptor
        # Closing alone is not enough: a process that another thread is starting shares the
        # descriptor. After an error, leftovers of an ended git must keep the lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _take(descriptor: int, lock: Path, *, patience_s: float) -> None:
    if patience_s == math.inf:
        return fcntl.flock(descriptor, fcntl.LOCK_EX)
    give_up_at = time.monotonic() + patience_s
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up_at:
                break
        time.sleep(_LOOK_EVERY_S)
    raise Conflict(
        f"another crew process holds {lock.name}",
        hint="let it finish and try again",
        code="lock_held",
    )
