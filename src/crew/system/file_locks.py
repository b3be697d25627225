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
    """Hold the lock. A git process that gets the descriptor as `keep_open` holds it too."""
    descriptor = open_lock(lock, mode=0o666)
    try:
        _take(descriptor, lock, patience_s=patience_s)
        yield descriptor
        # After an error it is only closed: leftovers of an ended git must keep the lock.
        unlock(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def folder_held(folder: Path) -> Iterator[None]:
    """Hold the lock on the folder itself, which leaves no file behind."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        wait_for_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def open_lock(path: Path, *, mode: int) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)


def wait_for_lock(descriptor: int, *, is_shared: bool = False) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX)


def try_lock(descriptor: int, *, is_shared: bool = False) -> bool:
    """Whether the lock is ours now; `OSError` where the file system has no locks."""
    kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(descriptor: int) -> None:
    """Closing alone is not enough: a process that another thread is starting shares the file."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def _take(descriptor: int, lock: Path, *, patience_s: float) -> None:
    if patience_s == math.inf:
        wait_for_lock(descriptor)
        return
    give_up_at = time.monotonic() + patience_s
    while not try_lock(descriptor):
        if time.monotonic() >= give_up_at:
            raise Conflict(
                f"another crew process holds {lock.name}",
                hint="let it finish and try again",
                code="lock_held",
            )
        time.sleep(_LOOK_EVERY_S)
