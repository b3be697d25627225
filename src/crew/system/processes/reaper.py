"""The parent process of a step without a pid namespace: it ends after all its descendants.

It is started as `python -I -S reaper.py LIFELINE_FD PROGRAM ARGUMENT…`. As a subreaper it becomes
the parent of every daemon the program leaves behind, whatever that daemon does to its session or
its environment, so "no child left" proves that the step has ended. Only the runner holds the other
end of the lifeline, which is a pipe: when the runner dies, even by SIGKILL, the step dies with it.
"""

import os
import select
import signal
import sys
import time

# A process that hangs in the kernel would block the reaper forever. The limit counts kills instead
# of time, since time also passes while the reaper itself is stopped.
_GIVE_UP_AFTER_KILLS = 500
_PR_SET_CHILD_SUBREAPER = 36


def main(lifeline: int, command: list[str]) -> int:
    os.set_inheritable(lifeline, False)  # noqa: FBT003 - takes no keyword
    _become_subreaper()
    wake, end_requests = _listen()
    child = _start(command)
    _let_go_of_the_pipes()
    code = _wait(child, lifeline, wake, end_requests)
    _end_everything_below(child)
    return code


def _become_subreaper() -> None:
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - costs milliseconds and exists for Linux alone here

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _listen() -> tuple[int, list[int]]:
    """A file descriptor that becomes readable at each signal, and the list of requests to end."""
    wake, write_end = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    requests: list[int] = []
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: requests.append(got))
    return wake, requests


def _start(command: list[str]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()  # a script's `kill 0` must not reach the reaper
        for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored_by_python, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - argv comes from crew, no shell is meant
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _let_go_of_the_pipes() -> None:
    """Close our copies of the output pipes, so that the reader sees the program close its own."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)


def _wait(child: int, lifeline: int, wake: int, end_requests: list[int]) -> int:
    """The program's exit code as a shell reports it; 143 if it was asked to end."""
    while not end_requests:
        for pid, status in _reap():
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
        ready, _, _ = select.select([lifeline, wake], [], [])
        if lifeline in ready:
            break
        os.read(wake, 4096)
    return 128 + signal.SIGTERM


def _reap() -> list[tuple[int, int]]:
    """All children that have ended since the last call."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def _end_everything_below(child: int) -> None:
    for _ in range(_GIVE_UP_AFTER_KILLS):
        if not _has_children():
            return
        try:
            parents = _parents()
        except OSError:  # no /proc: only the program's own session is known
            os.killpg(child, signal.SIGKILL)
            return
        for pid in _below(os.getpid(), parents):
            _kill(pid, parents[pid])
        time.sleep(0.005)


def _kill(pid: int, parent: int) -> None:
    """Kill a process if its parent is unchanged, since a pid may be reused."""
    try:
        handle = os.pidfd_open(pid)
        try:
            if _parent(pid) == parent:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
    except OSError:
        return


def _has_children() -> bool:
    _reap()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _parents() -> dict[int, int]:
    """The parent of each process."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    return {pid: parent for pid in pids if (parent := _parent(pid))}


def _below(root: int, parents: dict[int, int]) -> set[int]:
    found: set[int] = set()
    while more := {
        pid for pid, parent in parents.items() if parent in found | {root} and pid not in found
    }:
        found |= more
    return found


def _parent(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib doubles the start
            stat = file.read()
    except OSError:
        return None
    return int(stat[stat.rindex(b")") + 2 :].split()[1])


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1]), sys.argv[2:]))
