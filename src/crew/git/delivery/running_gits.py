"""Finds the git commands that other programs are running in a checkout, from /proc.

A command that has read the index may write it back. Our index stays if no command is running that
could have read the index before we replaced it.
"""

import os
import time
from pathlib import Path

PROC = Path("/proc")

YOUNG_S = 10.0
"""An older command has read its index long ago, or waits for an editor or a pager."""

_LOOK_EVERY_S = 0.005
_TICKS = os.sysconf("SC_CLK_TCK")


def can_look() -> bool:
    return (PROC / "self" / "stat").exists()


def git_commands_in(folder: Path) -> frozenset[int]:
    """The young git commands that work in this folder, except our own."""
    place = str(folder.resolve())
    pids = [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 - names alone
    return frozenset(pid for pid in pids if _works_in(pid, place) and _counts(pid))


def _counts(pid: int) -> bool:
    is_git = b"(git" in _stat(pid)[:24]  # the name of its program
    return is_git and _age_s(pid) < YOUNG_S and not _is_ours(pid)


def await_quiet(folder: Path, *, until: float) -> None:
    """Wait until no git command is running there, or until this monotonic time."""
    while git_commands_in(folder) and time.monotonic() < until:
        time.sleep(_LOOK_EVERY_S)


def outlive(folder: Path, *, until: float) -> None:
    """Wait until the git commands that run there now have ended, or until this time."""
    left = git_commands_in(folder)
    while left and time.monotonic() < until:
        time.sleep(_LOOK_EVERY_S)
        left &= git_commands_in(folder)


def _stat(pid: int) -> bytes:
    """The line that the kernel prints; empty if the process has ended."""
    try:
        with (PROC / str(pid) / "stat").open("rb") as file:
            return file.read()
    except OSError:
        return b""


def _fields(pid: int) -> list[bytes]:
    """The fields after the program's name: its state, its parent, …"""
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
    """Uses one system call, since it runs for every process while a person's index is locked."""
    try:
        place = os.readlink(f"{PROC}/{pid}/cwd")  # noqa: PTH115 - twice as fast
    except OSError:
        return False
    return place == folder or place.startswith(f"{folder}/")
