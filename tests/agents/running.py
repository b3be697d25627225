"""Short ways to run a process in a test and to wait for what must come."""

import asyncio
import os
import shlex
import sys
import time
from pathlib import Path

from crew.system.processes.process import ProcessOrder, run_process

DAEMON = """
import os, signal, sys, time
if (between := os.fork()) == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(sys.argv[1], "w").write(str(os.getpid()))
        if len(sys.argv) > 2:
            os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"], {})
        time.sleep(600)
    os._exit(0)
while not os.path.exists(sys.argv[1]) or not os.path.getsize(sys.argv[1]):
    time.sleep(0.005)
os.waitpid(between, 0)
"""
"""Leaves a daemon and nothing else: whoever came between is gone, however slow it was."""


RUNNING = "import time; print(flush=True); time.sleep(600)"


def python(source, *arguments):
    return (sys.executable, "-I", "-S", "-c", source, *map(str, arguments))


def shell_python(source, *arguments):
    return shlex.join(python(source, *arguments))


def order(tmp_path, argv, *, marker, **changes):
    values = {
        "argv": tuple(argv),
        "cwd": tmp_path,
        "env": {"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        "log": tmp_path / "logs" / "step.log",
        "marker": marker,
        "timeout_s": 60.0,
        "idle_timeout_s": 60.0,
    }
    return ProcessOrder(**{**values, **changes})


class PatientLoop(asyncio.SelectorEventLoop):
    """Its clock can be put forward: a limit is over when a test says so, not for being short."""

    ahead_s = 0.0

    def time(self):
        return super().time() + self.ahead_s


def put_clock_forward(seconds):
    asyncio.get_running_loop().ahead_s += seconds


def finish(work, *, late_when=None):
    """Run to the end; once `late_when` is true, a hundred seconds pass at once."""

    async def time_passes():
        while not late_when():  # noqa: ASYNC110 - nobody there could set an event
            await asyncio.sleep(0.01)
        put_clock_forward(100.0)

    async def watched():
        passing = asyncio.ensure_future(time_passes()) if late_when else None
        try:
            return await work
        finally:
            if passing:
                passing.cancel()

    with asyncio.Runner(loop_factory=PatientLoop) as runner:
        return runner.run(watched())


def run(process_order, *, on_started=lambda pid: None, on_output=lambda chunk: None, **late):
    """Run to the end; an error that only the event loop sees fails the test too."""
    unseen = []

    async def watched():
        asyncio.get_running_loop().set_exception_handler(lambda _, told: unseen.append(told))
        return await run_process(process_order, on_started=on_started, on_output=on_output)

    end = finish(watched(), **late)
    assert unseen == []
    return end


def wait_until(condition, *, limit_s=60.0):
    """Poll with a long limit; the value that ended the wait."""
    ends_at = time.monotonic() + limit_s
    while time.monotonic() < ends_at:
        if value := condition():
            return value
        time.sleep(0.01)
    message = "waited too long"
    raise AssertionError(message)


def written(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def processes_holding(argument: str) -> list[int]:
    """Live processes with this text among their arguments, whatever their environment says."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            arguments = (folder / "cmdline").read_bytes()
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if argument.encode() in arguments and state not in "ZX":
            found.append(int(folder.name))
    return found
