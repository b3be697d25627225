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
    place = folder.resolve()
    with os.scandir(PROC) as found:
        pids = [int(one.name) for one in found if one.name.isdigit()]
    return frozenset(pid for pid in pids if _is_git(pid) and _counts(pid, place))


def _is_git(pid: int) -> bool:
    """By the name of its program; most processes are not, so this is asked first."""
    return b"(git" in _stat(pid)[:24]


def _counts(pid: int, folder: Path) -> bool:
    return _works_in(pid, folder) and _age_s(pid) < YOUNG_S and not _is_ours(pid)


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
        with open(f"{PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123 - read hundreds of times
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


def _works_in(pid: int, folder: Path) -> bool:
    try:
        return (PROC / str(pid) / "cwd").readlink().is_relative_to(folder)
    except OSError:
        return False
