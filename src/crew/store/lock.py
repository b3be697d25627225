"""One writer: the lock of the runner, with who holds it and since when."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crew.domain.effects import effect
from crew.domain.errors import Conflict


class LockHeld(Conflict):
    """Another process runs this crew."""

    code = "lock_held"

    def __init__(self, holder: dict[str, Any]) -> None:
        super().__init__(
            f"a runner is up already: pid {holder.get('pid', '?')}, "
            f"started {holder.get('started', 'just now')}",
            hint="`crew ps` shows its work, `crew stop` ends it",
        )
        self.holder = holder


@contextmanager
def writer_lock(path: Path, *, started: str) -> Iterator[None]:
    """Hold the lock while inside; `LockHeld` if somebody else has it. The kernel frees it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LockHeld(_holder(path)) from error
        _sign(handle, started)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def find_holder(path: Path) -> dict[str, Any] | None:
    """Who holds the lock now, or None."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _holder(path)
    else:
        return None
    finally:
        os.close(handle)


@effect("store.lock")
def _sign(handle: int, started: str) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps({"pid": os.getpid(), "started": started}).encode(), 0)


def _holder(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text() or "{}")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
