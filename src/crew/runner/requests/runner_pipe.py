"""Stores a request for the runner, wakes it, and waits for the reply; few imports, fast to load."""

import contextlib
import os
import stat
import time
from pathlib import Path
from typing import Any

from crew.domain.kernel.errors import NotFound, TimedOut
from crew.domain.requests import Request
from crew.store.database import Database
from crew.store.request_queue import add_request, find_reply, withdraw
from crew.store.runner_lock import RUNNER, RunnerStopped, StopWatch, find_runner
from crew.system.crash_points import effect

POLL_S = 0.02


def ask_runner(
    folder: Path, db: Database, request: Request, *, give_up_at: float, role: str = RUNNER
) -> Any | None:
    """Send a request to the runner of this `.crew/`; returns its reply, or None if none is up.

    `role` is that of the asking process, and decides which holders of the lock it may ask.
    """
    watch = StopWatch(folder / "lock", role=role)
    while find_runner(folder / "lock", role=role) is not None:
        watch.wait()  # it may be stopped while it holds the lock of the database
        number = add_request(db, request, at=time.time())
        wake_runner(folder)
        # A starting runner drops requests to the runner before it, so the request is sent again.
        with contextlib.suppress(NotFound):
            return _reply(watch, db, number, give_up_at=give_up_at)
    return None


def _reply(watch: StopWatch, db: Database, number: int, *, give_up_at: float) -> Any | None:
    while (found := find_reply(db, number)) is None:
        if time.monotonic() > give_up_at and withdraw(db, number):
            raise TimedOut(
                "the runner does not answer", hint="`crew ps` shows it; `crew stop --now` ends it"
            )
        if find_runner(watch.path, role=watch.role) is None and withdraw(db, number):
            return None
        try:
            watch.check()
        except RunnerStopped:
            if withdraw(db, number):
                raise
        time.sleep(POLL_S)
    return found


@effect("runner.wake")
def wake_runner(folder: Path) -> None:
    """Wake the runner, so that it looks for changes; do nothing if none is up."""
    try:
        pipe = os.open(folder / "wake", os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if stat.S_ISFIFO(os.fstat(pipe).st_mode):
            os.write(pipe, b".")
    except OSError:  # the pipe is full, so the runner will look; or the runner has just died
        return
    finally:
        os.close(pipe)
