"""Every process that a test starts begins with the default signals, and ends with the test."""

import itertools
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

VARIABLE = "XDG_CREW_TEST"
"""Crew passes only some variables of its caller on to agents; names with XDG_ are among them."""

MAY_TAKE_S = 30.0
"""A process that was told to end may do so after the test, however busy the machine is."""

_count = itertools.count()


def hand_down_no_ignored_signal() -> None:
    """In the background of a script or under `nohup` some are ignored, and a child inherits that.

    It does not inherit a handler: with one that does nothing we run on and it gets the default.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@contextmanager
def ended_processes(*, may_take_s: float = MAY_TAKE_S) -> Iterator[list[str]]:
    """Mark every process that is started inside; the list names those that had to be killed."""
    name = f"{os.getpid()}-{next(_count)}"
    before = _pids()
    killed: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, name)
        yield killed
    killed += _killed(name, before, may_take_s)


def _killed(name: str, before: set[int], may_take_s: float) -> list[str]:
    """Wait, then kill until none is left: a process may start another one before it dies."""
    give_up_at = time.monotonic() + may_take_s
    killed: dict[int, str] = {}
    while found := [pid for pid in _pids() - before if _carries(pid, name)]:
        if time.monotonic() >= give_up_at:
            for pid in found:
                killed[pid] = f"{pid}: {_command(pid)}"
                _kill(pid)
        time.sleep(0.01)
    return list(killed.values())


def _pids() -> set[int]:
    return {int(entry) for entry in os.listdir("/proc") if entry.isdigit()}  # noqa: PTH208


def _carries(pid: int, name: str) -> bool:
    return f"\0{VARIABLE}={name}\0".encode() in b"\0" + _read(pid, "environ")


def _command(pid: int) -> str:
    return _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")


def _read(pid: int, name: str) -> bytes:
    """Nothing for a process that has ended, or belongs to another user."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
