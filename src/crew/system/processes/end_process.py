"""Ends a step with SIGTERM, then SIGKILL, until none of its processes is alive."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess

from crew.domain.kernel.frozen import frozen
from crew.system.crash_points import effect
from crew.system.processes.ownership import GRACE_S, ask_to_end, kill_marked
from crew.system.processes.pipes import Pipes

_DRAIN_S = 2.0  # for a pipe that a process outside the step holds
_TOP_ENDS_WITHIN_S = 12.0  # the reaper gives up a little earlier
_NAMESPACE_ENDS_WITHIN_S = 10.0
_INFO_LIMIT = 4096
_POLL_S = 0.02


@frozen
class Child:
    """A started program: its top process and the extra pipe."""

    top: subprocess.Popen[bytes]
    marker: str
    lifeline: int | None = None  # with a reaper: closing it ends the step
    info: int | None = None  # with bubblewrap: reports the first process of the namespace

    def close(self) -> None:
        for pipe in (self.lifeline, self.info):
            if pipe is not None:
                os.close(pipe)


async def end(child: Child, pipes: Pipes, exited: "asyncio.Task[None]") -> None:
    """End all processes of the step, whether the program itself has ended or not."""
    try:
        if not exited.done():
            await asyncio.to_thread(ask_to_end, child.top.pid, child.marker)
            await asyncio.wait({exited}, timeout=GRACE_S)
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not exited.done():
                _signal_top(child.top, number)
                await asyncio.wait({exited}, timeout=_TOP_ENDS_WITHIN_S)
        if not await _is_namespace_over(child):
            await asyncio.to_thread(kill_marked, child.marker)
        await pipes.drain(timeout_s=_DRAIN_S)
    finally:
        exited.cancel()
        pipes.close()
        child.close()


async def exit_of(process: subprocess.Popen[bytes]) -> None:
    """Wait until a child has exited, and reap it."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not Linux, or a kernel that is too old
        while process.poll() is None:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(_POLL_S)
        return
    try:
        await _readable(handle)
        process.wait()
    finally:
        os.close(handle)


@effect("agents.end_step")
def _signal_top(top: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal the top process. It is not reaped yet, so the pid is still its own."""
    if top.returncode is None:
        top.send_signal(number)


async def _is_namespace_over(child: Child) -> bool:
    """True once the namespace's first process has ended, which the kernel ends last.

    Then crew need not search all processes of the machine, the most expensive part of a step.
    """
    first = _first_process(child)
    if first is None:
        return False
    try:
        handle = os.pidfd_open(first)
    except ProcessLookupError:
        return True
    except (AttributeError, OSError):  # not Linux, or a kernel that is too old
        return False
    try:
        async with asyncio.timeout(_NAMESPACE_ENDS_WITHIN_S):
            await _readable(handle)
    except TimeoutError:
        return False
    finally:
        os.close(handle)
    return True


def _first_process(child: Child) -> int | None:
    """The pid that bubblewrap reported; None without a namespace, or if it died too early."""
    if child.info is None:
        return None
    with contextlib.suppress(OSError):
        if found := re.search(rb'"child-pid": *(\d+)', os.read(child.info, _INFO_LIMIT)):
            return int(found[1])
    return None


async def _readable(handle: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(handle, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(handle)
