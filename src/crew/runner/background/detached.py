"""Starts a runner in the background, in a process session of its own."""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import CheckFailed, CrewError, TimedOut, TryLater
from crew.store.runner_lock import LockHeld, find_runner
from crew.system.private_files import make_private_folder
from crew.system.processes.process import start_detached

if TYPE_CHECKING:
    from crew.workplace import Workplace

START_LIMIT_S = 60.0
POLL_S = 0.02
DRAINED = frozenset({CheckFailed.exit_code, TryLater.exit_code})
"""Exit codes of `--drain` when work is left; a runner that fails prints the reason."""


def start_runner(workplace: "Workplace", args: list[str]) -> int:
    """Start a runner and return its pid once it holds the lock."""
    log = workplace.logs / "crew.log"
    begins_at = log.stat().st_size if log.exists() else 0
    pid = launch_runner(workplace, args)
    give_up_at = time.monotonic() + START_LIMIT_S
    while time.monotonic() < give_up_at:
        holder = find_runner(workplace.lock_file)
        if holder is not None and holder.get("pid") == pid:
            return pid
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return _ended_early(pid, os.waitstatus_to_exitcode(status), holder, log, begins_at)
        time.sleep(POLL_S)
    raise TimedOut("the runner did not start in time", hint=f"read {log}")


def run_arguments(*, count: int | None, kind: str | None, drain: bool) -> list[str]:
    """The arguments of `crew run` for a runner in the background."""
    agents = ["--agents", str(count)] if count else []
    return ["run", *agents, *(["--agent", kind] if kind else []), *(["--drain"] if drain else [])]


def launch_runner(workplace: "Workplace", args: list[str]) -> int:
    """Start the process and return its pid; it may not hold the lock yet."""
    make_private_folder(workplace.logs)
    return start_detached(_argv(workplace, args), log=workplace.logs / "crew.log")


def _argv(workplace: "Workplace", args: list[str]) -> tuple[str, ...]:
    # -P: Python must not import a folder called `crew` in the current directory as the package.
    return (sys.executable, "-P", "-m", "crew", "-C", str(workplace.root), "--no-color", *args)


def _ended_early(
    pid: int, code: int, holder: dict[str, object] | None, log: Path, begins_at: int
) -> int:
    """Accept a runner that already finished its work; raise if it failed to start."""
    said = log.read_bytes()[begins_at:].decode(errors="replace").strip().splitlines()
    complaint = next((line for line in said if line.startswith("crew: ")), None)
    if code == 0 or (code in DRAINED and complaint is None):
        return pid
    if holder is not None:
        raise LockHeld(holder)
    words = complaint or f"it ended with {code}"
    raise CrewError(
        f"the runner did not start: {words}", hint=f"read {log}", code="runner_not_started"
    )
