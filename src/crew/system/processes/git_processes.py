"""Waits for the git processes in a folder: after they have ended, their locks are stale."""

import os
import time
from collections.abc import Collection
from pathlib import Path

from crew.system.processes.ownership import find_process

_LOOK_AGAIN_AFTER_S = 0.02


def have_gits_ended(folders: Collection[Path], *, patience_s: float) -> bool:
    """True once every current git process in these folders has ended; False after the limit.

    A lock that existed before this check cannot belong to a git that starts later. Git changes into
    the folder it works in, so its working directory identifies it. Without /proc no process is
    visible, and the caller has to rely on its own knowledge.
    """
    seen = _gits_in(folders)
    give_up_at = time.monotonic() + patience_s
    while seen := {one for one in seen if _lives(*one)}:
        if time.monotonic() > give_up_at:
            return False
        time.sleep(_LOOK_AGAIN_AFTER_S)
    return True


def _gits_in(folders: Collection[Path]) -> set[tuple[int, int]]:
    places = {os.path.realpath(folder) for folder in folders}
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return set()
    found = (find_process(pid) for pid in pids if _is_git_in(pid, places))
    return {process.identity for process in found if process is not None}


def _is_git_in(pid: int, places: Collection[str]) -> bool:
    try:
        name = Path(f"/proc/{pid}/comm").read_bytes()
        where = os.readlink(f"/proc/{pid}/cwd") if name.startswith(b"git") else ""  # noqa: PTH115
    except OSError:
        return False
    return any(where == place or where.startswith(f"{place}/") for place in places)


def _lives(pid: int, started: int) -> bool:
    process = find_process(pid)
    return process is not None and process.started == started
