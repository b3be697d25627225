"""The lock that allows one writer, with the process that holds it and its start time."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crew.domain.kernel.errors import Conflict, CrewError, TryLater
from crew.system.crash_points import effect
from crew.system.file_locks import open_lock, try_lock, unlock


class LockHeld(Conflict):
    """Another process holds the lock of this crew."""

    code = "lock_held"

    def __init__(self, holder: dict[str, Any]) -> None:
        super().__init__(
            f"a {holder.get('role', 'runner')} is already running: pid {holder.get('pid', '?')}, "
            f"started {holder.get('started', 'just now')}",
            hint="`crew ps` shows its work, `crew stop` ends it",
        )
        self.holder = holder


RUNNER = "runner"
COMMAND = "command"
LANDER = "lander"
"""A `crew merge` without a runner, which also lands the tasks of other `crew merge` calls."""

_ASKS = {
    RUNNER: frozenset({RUNNER}),
    COMMAND: frozenset({RUNNER}),
    LANDER: frozenset({RUNNER, LANDER}),
}
"""The roles to which each role sends a request, instead of waiting for the lock."""

_SHORT_WAIT_S = 10.0
_STOPPED_FOR_S = 0.5
_LOOK_EVERY_S = 0.1


@contextmanager
def writer_lock(path: Path, *, role: str, started: str) -> Iterator[bool]:
    """Hold the lock while inside; `LockHeld` if a runner has it. The kernel frees it when we end.

    Waits for a short command or a reader. A lander sends its request to another lander.
    Yields whether the previous holder ended properly: a killed one leaves its signature.
    """
    is_new = not path.exists()
    handle = _open_file(path)
    try:
        _take(handle, path, asks=_ASKS[role])
        is_in_order = not is_new and os.fstat(handle).st_size == 0
        _sign(handle, {"pid": os.getpid(), "started": started, "role": role})
        yield is_in_order
        os.ftruncate(handle, 0)
    finally:
        unlock(handle)
        os.close(handle)


def _open_file(path: Path) -> int:
    try:
        return open_lock(path, mode=0o600)
    except OSError as error:
        raise CrewError(
            f"cannot write to {path}: {error.strerror}",
            hint="crew must be able to write there: check its owner, its permissions and the disk",
            code="not_writable",
        ) from error


def _take(handle: int, path: Path, *, asks: frozenset[str]) -> None:
    give_up_at = time.monotonic() + _SHORT_WAIT_S
    while not _is_taken(handle):
        holder = {} if _has_only_readers(handle) else _holder(path)
        is_asked = holder.get("role") in asks and _is_alive(holder)
        if is_asked or time.monotonic() > give_up_at:
            raise LockHeld(holder)
        time.sleep(0.02)


def _is_alive(holder: dict[str, Any]) -> bool:
    """Whether the signature is current: a new holder that has not signed yet shows a dead one."""
    try:
        os.kill(int(holder.get("pid", 0)), 0)
    except OSError as error:
        return isinstance(error, PermissionError)  # another user's
    return True


def _has_only_readers(handle: int) -> bool:
    """Whether no process writes, so that the signature is that of a killed one."""
    if not _is_taken(handle, is_shared=True):
        return False
    unlock(handle)
    return True


def find_runner(path: Path, *, role: str = RUNNER) -> dict[str, Any] | None:
    """The runner that holds the lock now, or None. A lander also accepts another lander."""
    holder = find_holder(path)
    return holder if holder is not None and holder.get("role") in _ASKS[role] else None


class RunnerStopped(TryLater):
    """The process that would answer is stopped, as by Ctrl-Z, and does nothing until it goes on."""

    code = "runner_stopped"

    def __init__(self, holder: dict[str, Any]) -> None:
        pid = holder.get("pid")
        super().__init__(
            f"the {holder.get('role', 'runner')} does not answer: process {pid} is stopped, as by "
            "Ctrl-Z",
            hint=f"continue it with `fg` in its terminal, or: kill -CONT {pid}",
        )


@dataclass(slots=True)
class StopWatch:
    """Notices that the holder of the lock is stopped, and not only busy.

    A debugger stops a process for moments, so it must be found stopped for a while.
    """

    path: Path
    role: str = RUNNER
    _since: float | None = None
    _looks_at: float = 0.0

    def check(self) -> None:
        """Raise if the holder has been stopped for a while. Cheap enough for every poll."""
        now = time.monotonic()
        if now < self._looks_at:
            return
        self._looks_at = now + _LOOK_EVERY_S
        holder = find_runner(self.path, role=self.role)
        if holder is None or not is_stopped(holder.get("pid", 0)):
            self._since = None
            return
        self._since = self._since or now
        if now - self._since >= _STOPPED_FOR_S:
            raise RunnerStopped(holder)

    def wait(self) -> None:
        """Wait while the holder is stopped; raise if that does not end."""
        self.check()
        while self._since is not None:
            time.sleep(_LOOK_EVERY_S)
            self.check()


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal, as its state in /proc says."""
    try:
        stat = Path(f"/proc/{int(pid)}/stat").read_bytes()
    except (OSError, ValueError, TypeError):
        return False
    return stat[stat.rfind(b")") + 2 :][:1] == b"T"


def find_holder(path: Path) -> dict[str, Any] | None:
    """The process that holds the lock now, or None. Empty if it has not signed yet."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _is_taken(handle, is_shared=True) else _holder(path)
    finally:
        os.close(handle)


def _is_taken(handle: int, *, is_shared: bool = False) -> bool:
    try:
        return try_lock(handle, is_shared=is_shared)
    except OSError:  # a file system without locks: what the file says is all there is
        return False


@effect("store.lock")
def _sign(handle: int, holder: dict[str, Any]) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(holder).encode(), 0)


def _holder(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text() or "{}")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
