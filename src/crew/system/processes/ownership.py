"""Finds the processes that carry crew's marker in their environment, and ends them.

Every process of a step inherits `CREW_OWNER=<marker>`. The kernel may reuse a pid at any moment, so
a signal goes through a pidfd, after a second check that it is still the same process.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from crew.domain.kernel.errors import UsageError
from crew.domain.kernel.frozen import frozen
from crew.system.crash_points import effect

MARKER_VARIABLE = "CREW_OWNER"
GRACE_S = 2.0
_GIVE_UP_AFTER_KILLS = 500  # a process that hangs in the kernel must not hang the runner
_LOOK_AGAIN_AFTER_S = 0.01
_LOADED_AFTER_LOOKS = 100
# Positions in /proc/PID/stat, counted from the parent's pid.
_FLAGS, _ENVIRONMENT_END = 5, 47
_KERNEL_THREAD = 0x0020_0000


@frozen
class RunningProcess:
    """A live process. Pid and start time together identify it for good."""

    pid: int
    parent: int
    started: int
    marker: str

    @property
    def identity(self) -> tuple[int, int]:
        return self.pid, self.started


def owned_processes(prefix: str) -> tuple[tuple[int, str], ...]:
    """Pid and marker of each live process whose marker begins with the prefix."""
    found = running_processes().values()
    return tuple((one.pid, one.marker) for one in found if _begins(one, prefix))


def kill_leftovers(prefix: str) -> int:
    """End the processes that an earlier runner left behind; their number.

    The caller and its ancestors are spared even if they carry the marker. Otherwise a `crew`
    command that an agent runs would end itself.
    """
    if not prefix:
        raise UsageError(
            "an empty prefix would end the processes of every crew on this machine",
            hint="pass the repository's id",
        )
    if not running_processes():
        import logging  # noqa: PLC0415 - short commands load this module and never log

        log = logging.getLogger(__name__)
        log.warning("there is no /proc: processes that a killed runner left cannot be found")
        return 0
    return end_all(lambda one: _begins(one, prefix))


def kill_marked(marker: str) -> int:
    """End the remaining processes of one step; their number."""
    return end_all(lambda one: one.marker == marker, grace_s=0.0)


def end_all(
    is_ours: Callable[[RunningProcess], bool],
    *,
    grace_s: float = GRACE_S,
    hang_up_after_s: float | None = None,
) -> int:
    """Send SIGTERM, wait, then SIGKILL, until no such process and no descendant is left.

    An interactive shell ignores SIGTERM and ends at SIGHUP. The limit counts kills instead of time,
    since time also passes while this process itself is stopped.
    """
    began, kills = time.monotonic(), 0
    seen: dict[tuple[int, int], signal.Signals | None] = {}

    def is_one_of_them(one: RunningProcess) -> bool:
        return is_ours(one) or one.identity in seen  # an orphan is no longer a descendant

    while kills < _GIVE_UP_AFTER_KILLS and (family := _family(running_processes(), is_one_of_them)):
        waited_s = time.monotonic() - began
        number = signal.SIGKILL if waited_s >= grace_s else signal.SIGTERM
        if number == signal.SIGTERM and waited_s >= (hang_up_after_s or grace_s):
            number = signal.SIGHUP
        for one in family:
            is_asked = number != signal.SIGKILL and seen.get(one.identity) == number
            if is_asked or send_signal(one, number):
                seen[one.identity] = number
            else:  # it has ended, or became another program and is asked again
                seen.setdefault(one.identity, None)
        kills += number == signal.SIGKILL
        time.sleep(_LOOK_AGAIN_AFTER_S)
    return len(seen)


def ask_to_end(top: int, marker: str) -> None:
    """Send SIGTERM to all descendants of a step's top process, which keeps running."""
    table = running_processes()
    for one in _family(table, lambda one: one.pid == top or one.marker == marker):
        if one.pid != top:
            send_signal(one, signal.SIGTERM)


@effect("agents.signal")
def send_signal(process: RunningProcess, number: signal.Signals) -> bool:
    """Signal exactly this process; False if it has ended or its pid was reused."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        now = find_process(process.pid)
        if now is None or (now.identity, now.marker) != (process.identity, process.marker):
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def running_processes() -> dict[int, RunningProcess]:
    """Every live process that is visible; empty without /proc."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return {}
    return {pid: found for pid in pids if (found := find_process(pid))}


def find_process(pid: int) -> RunningProcess | None:
    """The live process with this pid. A zombie counts as ended.

    The environment is not readable while the kernel loads the program, so a process without one is
    read again.
    """
    for look in range(_LOADED_AFTER_LOOKS):
        stat = _read(f"/proc/{pid}/stat") or b""
        state, *values = stat[stat.rfind(b")") + 2 :].split() or (b"X",)
        if state in (b"Z", b"X"):
            return None
        environ = _read(f"/proc/{pid}/environ")
        is_loaded = _has_environment(values)
        if environ != b"" or (is_loaded and look) or _is_of_the_kernel(values):
            break
        if not is_loaded:
            time.sleep(_LOOK_AGAIN_AFTER_S)
    marker = _marker(environ or b"")
    return RunningProcess(pid=pid, parent=int(values[0]), started=int(values[18]), marker=marker)


def markers_above() -> list[str]:
    """The markers of this process and its ancestors, the nearest first.

    A step cannot drop them: its environment may be emptied and its session left, but a process that
    loses its parent becomes a child of the step's reaper or of the first process of its namespace.
    """
    found: list[str] = []
    pid, seen = os.getpid(), set[int]()
    while pid and pid not in seen and (one := find_process(pid)):
        seen.add(pid)
        found += [one.marker] if one.marker else []
        pid = one.parent
    return found


def variables_above(*names: str) -> dict[str, str]:
    """These variables of the nearest ancestor that has the first of them; empty if none has it."""
    pid, seen = os.getpid(), set[int]()
    while pid and pid not in seen and (one := find_process(pid)):
        seen.add(pid)
        environ = _read(f"/proc/{pid}/environ") or b""
        if _variable(environ, names[0]):
            return {name: _variable(environ, name) for name in names}
        pid = one.parent
    return {}


def _has_environment(stat: Sequence[bytes]) -> bool:
    """Whether the kernel has set its environment, even an empty one."""
    return len(stat) <= _ENVIRONMENT_END or int(stat[_ENVIRONMENT_END]) != 0


def _is_of_the_kernel(stat: Sequence[bytes]) -> bool:
    return bool(int(stat[_FLAGS]) & _KERNEL_THREAD)


def _read(path: str) -> bytes | None:
    """The content of a small kernel file; None if it is another user's or its process ended.

    Every process of the machine is checked after every step, and `pathlib` would be ten times
    slower than the kernel.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        pieces = []
        while piece := os.read(file, 65_536):
            pieces.append(piece)
        return b"".join(pieces)
    except OSError:
        return None
    finally:
        os.close(file)


def _marker(environ: bytes) -> str:
    return _variable(environ, MARKER_VARIABLE)


def _variable(environ: bytes, name: str) -> str:
    start = f"\0{name}=".encode()
    place = (b"\0" + environ).find(start)
    if place < 0:
        return ""
    return os.fsdecode(environ[place + len(start) - 1 :].partition(b"\0")[0])


def _begins(process: RunningProcess, prefix: str) -> bool:
    return process.marker.startswith(prefix)


def _family(
    table: Mapping[int, RunningProcess], is_ours: Callable[[RunningProcess], bool]
) -> list[RunningProcess]:
    """Our processes and their descendants, without the caller and its ancestors.

    Parents come before their children: a script whose command ends first would start its next one.
    """
    spared = _with_ancestors(table, os.getpid())
    family = {pid for pid, one in table.items() if is_ours(one)} - spared
    while more := _children(table, family) - family - spared:
        family |= more
    by_depth = sorted(family, key=lambda pid: len(_with_ancestors(table, pid)))
    return [table[pid] for pid in by_depth]


def _with_ancestors(table: Mapping[int, RunningProcess], pid: int) -> set[int]:
    line = {pid}
    while (one := table.get(pid)) and one.parent not in line:
        pid = one.parent
        line.add(pid)
    return line


def _children(table: Mapping[int, RunningProcess], parents: Collection[int]) -> set[int]:
    return {pid for pid, one in table.items() if one.parent in parents}
