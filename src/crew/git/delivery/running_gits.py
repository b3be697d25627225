"""The git commands that other programs run in a checkout at this moment, as /proc shows them.

A command that has read the index may write it back as it was. While none is alive that could have
read it before we replaced it, ours stays.
"""

import os
import time
from pathlib import Path

PROC = Path("/proc")

YOUNG_S = 10.0
"""A command that is older has read its index long ago, or waits for an editor or a pager."""

_LOOK_EVERY_S = 0.005
_TICKS = os.sysconf("SC_CLK_TCK")


def can_look() -> bool:
    return (PROC / "self" / "stat").exists()


def git_commands_in(folder: Path) -> frozenset[int]:
    """The young git commands with their working directory in this folder, but for our own."""
    place = str(folder.resolve())
    pids = [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 - names alone
    return frozenset(pid for pid in pids if _works_in(pid, place) and _counts(pid))


def _counts(pid: int) -> bool:
    is_git = b"(git" in _stat(pid)[:24]  # the name of its program
    return is_git and _age_s(pid) < YOUNG_S and not _is_ours(pid)


def await_quiet(folder: Path, *, until: float) -> None:
    """Until no git command is at work there, or the time (of the monotonic clock) is over."""
    while git_commands_in(folder) and time.monotonic() < until:
        time.sleep(_LOOK_EVERY_S)


def outlive(folder: Path, *, until: float) -> None:
    """Until those that are at work there now have ended, or the time is over."""
    left = git_commands_in(folder)
    while left and time.monotonic() < until:
        time.sleep(_LOOK_EVERY_S)
        left &= git_commands_in(folder)


def _stat(pid: int) -> bytes:
    """As the kernel prints it; empty when the process is gone."""
    try:
        with (PROC / str(pid) / "stat").open("rb") as file:
            return file.read()
    except OSError:
        return b""


def _fields(pid: int) -> list[bytes]:
    """What follows the name of the program: its state, its parent, …"""
    return _stat(pid).rpartition(b") ")[2].split(b" ")


def _age_s(pid: int) -> float:
    fields = _fields(pid)
    if len(fields) < 20:
        return YOUNG_S
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / _TICKS


def _is_ours(pid: int) -> bool:
    ours = os.getpid()
    while pid > 1:
        fields = _fields(pid)
        pid = int(fields[1]) if len(fields) > 1 else 0
        if pid == ours:
            return True
    return False


def _works_in(pid: int, folder: str) -> bool:
    """Asked of every process, while a person's index is locked: so it takes one system call."""
    try:
        place = os.readlink(f"{PROC}/{pid}/cwd")  # noqa: PTH115 - twice as fast
    except OSError:
        return False
    return place == folder or place.startswith(f"{folder}/")
