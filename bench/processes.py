"""What processes cost: CPU time of children that have ended, memory of those that run."""

import os
import resource
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from crew.git import spawn_git

MB = 1_000_000


class CpuByProgram:
    """Adds up the CPU time of every child this process waits for, by the program's name.

    `subprocess` and crew's own start of git reap with `waitpid`, which tells nothing; this puts
    `wait4` in its place, which tells what the child and everything it waited for itself have used.
    """

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.starts: Counter[str] = Counter()

    def install(self) -> None:
        def try_wait(child: Any, flags: int) -> tuple[int, int]:
            try:
                pid, status, used = os.wait4(child.pid, flags)
            except ChildProcessError:
                return child.pid, 0
            if pid:
                self._count(Path(child.args[0]).name, used)
            return pid, status

        def reap(pid: int) -> int:
            _, status, used = os.wait4(pid, 0)
            self._count("git", used)
            return os.waitstatus_to_exitcode(status)

        subprocess.Popen._try_wait = try_wait  # type: ignore[attr-defined]  # noqa: SLF001
        spawn_git.reap = reap

    def _count(self, name: str, used: resource.struct_rusage) -> None:
        self.seconds[name] += used.ru_utime + used.ru_stime
        self.starts[name] += 1


def cpu_s(
    argv: list[str],
    *,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    stdin: str = os.devnull,
    codes: tuple[int, ...] = (0,),
) -> float:
    """The CPU time of one command, its children included; it must exit with one of the codes."""
    silent = subprocess.DEVNULL
    with Path(stdin).open("rb") as source:
        child = subprocess.Popen(argv, cwd=cwd, env=env, stdin=source, stdout=silent, stderr=silent)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in codes:
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
