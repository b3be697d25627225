"""Starts a runner for a manager: if the manager started it, it would inherit the sandbox.

The manager's `crew run --detach` writes its wish into a named pipe. A process outside the sandbox,
with a person's environment, starts the runner and writes the result into a file.
"""

import contextlib
import json
import os
import select
import stat
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from crew.domain.kernel.errors import CrewError, TimedOut
from crew.runner.background.detached import (
    START_LIMIT_S,
    launch_runner,
    run_arguments,
    start_runner,
)
from crew.store.runner_lock import find_runner
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.file_locks import open_lock, try_lock
from crew.system.private_files import FILE_MODE, open_pipe
from crew.workplace import Workplace

DOOR_VARIABLE = "CREW_RUNNER_DOOR"
"""Names the pipe in the environment of a manager."""

OPENING_LIMIT_S = 20.0
"""The door of a terminal opens after the terminal: a manager may ask before that."""

_POLL_S = 0.05
_MOST_BYTES = 4_000


def door_of(workplace: Workplace) -> Path:
    return workplace.folder / "start-runner"


def ask_for_runner(
    workplace: Workplace, *, count: int | None, kind: str | None, drain: bool
) -> int:
    """Have a runner started outside the sandbox; its pid."""
    number = uuid.uuid4().hex
    wish = {"id": number, "agents": count, "agent": kind, "drain": drain}
    if not _hand_over(door_of(workplace), wish):
        raise CrewError(
            "no process outside this sandbox can start a runner for the manager",
            hint="ask a person to start one with `crew run`, or to open `crew manager` again",
            code="no_manager_door",
        )
    give_up_at = time.monotonic() + START_LIMIT_S
    while time.monotonic() < give_up_at:
        reply = _reply(workplace, number) or find_runner(workplace.lock_file) or {}
        if "error" in reply:
            raise CrewError(
                str(reply["error"]), hint=str(reply["hint"]), code="not_started_outside"
            )
        if "pid" in reply:
            return int(reply["pid"])
        time.sleep(_POLL_S)
    log = workplace.logs / "crew.log"
    raise TimedOut("the runner did not start in time", hint=f"read {log}")


def open_door(workplace: Workplace) -> None:
    """Start the process outside that serves the manager of a terminal, until that ends."""
    launch_runner(workplace, ["_manager-door"])


@contextlib.contextmanager
def serving(workplace: Workplace) -> Iterator[None]:
    """Serve a manager that this process runs."""
    is_over = threading.Event()
    thread = threading.Thread(
        target=lambda: serve(workplace, lambda: not is_over.is_set(), every_s=0.1)
    )
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def serve(workplace: Workplace, is_needed: Callable[[], bool], *, every_s: float) -> None:
    """Start runners as long as they may be asked for. A second server does nothing."""
    lock = open_lock(workplace.folder / "start-runner.lock", mode=FILE_MODE)
    try:
        if not try_lock(lock):
            return
        pipe = open_pipe(door_of(workplace))
        try:
            while is_needed():
                if select.select([pipe], [], [], every_s)[0]:
                    _answer_all(workplace, os.read(pipe, _MOST_BYTES))
        finally:
            os.close(pipe)
    finally:
        os.close(lock)


def _answer_all(workplace: Workplace, written: bytes) -> None:
    for line in written.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):  # not written by crew
            wish = json.loads(line)
            _keep_reply(workplace, {"id": str(wish["id"]), **_started(workplace, wish)})


def _started(workplace: Workplace, wish: Mapping[str, Any]) -> dict[str, Any]:
    count, kind = wish["agents"], wish["agent"]
    args = run_arguments(
        count=count if isinstance(count, int) else None,
        kind=kind if isinstance(kind, str) else None,
        drain=wish["drain"] is True,
    )
    if (runner := find_runner(workplace.lock_file)) is not None:  # for an earlier wish
        return {"pid": runner.get("pid", 0)}
    try:
        return {"pid": start_runner(workplace, args)}
    except CrewError as error:
        return {"error": error.message, "hint": error.hint}


def _hand_over(pipe: Path, wish: dict[str, Any]) -> bool:
    """Write the wish as soon as a process reads the pipe; False if none does in time."""
    give_up_at = time.monotonic() + OPENING_LIMIT_S
    while not _write(pipe, wish):
        if time.monotonic() >= give_up_at:
            return False
        time.sleep(_POLL_S)
    return True


@effect("runner.ask_door")
def _write(pipe: Path, wish: dict[str, Any]) -> bool:
    """False if there is no pipe, or no process that reads it."""
    try:
        handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        is_pipe = stat.S_ISFIFO(os.fstat(handle).st_mode)
        return is_pipe and os.write(handle, json.dumps(wish).encode() + b"\n") > 0
    except OSError:
        return False
    finally:
        os.close(handle)


@effect("runner.answer_door")
def _keep_reply(workplace: Workplace, reply: dict[str, Any]) -> None:
    write_file(_reply_file(workplace), json.dumps(reply).encode(), mode=FILE_MODE)


def _reply(workplace: Workplace, number: str) -> dict[str, Any] | None:
    """The reply to this wish; None as long as there is none."""
    try:
        found = json.loads(_reply_file(workplace).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("id") == number else None


def _reply_file(workplace: Workplace) -> Path:
    return workplace.folder / "start-runner.json"
