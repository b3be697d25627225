"""Leaves a request for the runner and waits for its reply; light, for those who start often."""

import contextlib
import os
import time
from pathlib import Path
from typing import Any

from crew.domain.kernel.errors import NotFound, TimedOut
from crew.domain.requests import Request
from crew.store.database import Database
from crew.store.request_queue import add_request, find_reply, withdraw
from crew.store.runner_lock import RUNNER, find_runner
from crew.system.crash_points import effect

POLL_S = 0.02


def ask_runner(
    folder: Path, db: Database, request: Request, *, give_up_at: float, role: str = RUNNER
) -> Any | None:
    """What the runner of this `.crew/` replies; None when none is up that could have heard it.

    `role` is that of the process that asks, if it has one.
    """
    while find_runner(folder / "lock", role=role) is not None:
        number = add_request(db, request, at=time.time())
        wake_runner(folder)
        # A runner that begins drops what was asked of the one before it: it hears the next.
        with contextlib.suppress(NotFound):
            return _reply(folder, db, number, give_up_at=give_up_at, role=role)
    return None


def _reply(folder: Path, db: Database, number: int, *, give_up_at: float, role: str) -> Any | None:
    while (found := find_reply(db, number)) is None:
        if time.monotonic() > give_up_at and withdraw(db, number):
            raise TimedOut(
                "the runner does not answer", hint="`crew ps` shows it; `crew stop --now` ends it"
            )
        if find_runner(folder / "lock", role=role) is None and withdraw(db, number):
            return None
        time.sleep(POLL_S)
    return found


@effect("runner.wake")
def wake_runner(folder: Path) -> None:
    """Tell the runner that there is something to look at; nothing happens when none is up."""
    try:
        pipe = os.open(folder / "wake", os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        os.write(pipe, b".")
    except OSError:  # it is full, so the runner will look; or the runner has just died
        return
    finally:
        os.close(pipe)
