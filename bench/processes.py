"""What processes cost: CPU time of children that have ended, memory of those that run."""

import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

MB = 1_000_000


class CpuByProgram:
    """Adds up the CPU time of every child this process waits for, by the program's name.

    `subprocess` reaps with `waitpid`, which tells nothing; this puts `wait4` in its place, which
    tells what the child and everything the child itself waited for have used.
    """

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.starts: Counter[str] = Counter()

    def install(self) -> None:
        seconds, starts = self.seconds, self.starts

        def try_wait(child: Any, flags: int) -> tuple[int, int]:
            try:
                pid, status, used = os.wait4(child.pid, flags)
            except ChildProcessError:
                return child.pid, 0
            if pid:
                name = Path(child.args[0]).name
                seconds[name] += used.ru_utime + used.ru_stime
                starts[name] += 1
            return pid, status

        subprocess.Popen._try_wait = try_wait  # type: ignore[attr-defined]  # noqa: SLF001


def cpu_s(argv: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> float:
    """The CPU time of one command, its children included; it must exit 0."""
    child = subprocess.Popen(
        argv, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{argv} exited with {child.returncode}")
    return used.ru_utime + used.ru_stime


def least_cpu_s(argv: list[str], *, times: int, **options: Any) -> float:
    """The minimum: on a noisy machine everything else only adds."""
    return min(cpu_s(argv, **options) for _ in range(times))


def resident_mb(pid: int) -> float:
    """What a process has in memory, pages it shares with others counted in full (RSS)."""
    return _status_mb(pid, "VmRSS")


def peak_mb(pid: int) -> float:
    """The most that was resident at any moment."""
    return _status_mb(pid, "VmHWM")


def _status_mb(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / MB
    raise ProcessLookupError(f"{pid} has ended")
