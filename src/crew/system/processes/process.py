"""Runs one program as a child and ends all its descendants with it: the only way to start one."""

import asyncio
import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.text import Tail
from crew.system.bounded_log import Log
from crew.system.crash_points import effect
from crew.system.private_files import open_private
from crew.system.processes.end_process import Child, end, exit_of
from crew.system.processes.ownership import MARKER_VARIABLE, kill_leftovers, owned_processes
from crew.system.processes.pipes import Pipes, Take, Talk
from crew.system.processes.process_end import ProcessEnd, Reason, process_end
from crew.system.processes.sealed_start import closed_by_seal, sealed
from crew.system.processes.start_command import (
    Wrapper,
    copies_opened,
    has_seatbelt,
    start_command,
    unmet_limit,
)
from crew.system.sandbox.allowed import EVERYTHING, Allowed, Sandbox
from crew.system.sandbox.bubblewrap import PROBE
from crew.system.threads import even_if_cancelled

__all__ = [
    "ProcessEnd",
    "ProcessOrder",
    "become",
    "kill_leftovers",
    "load_wrapper",
    "owned_processes",
    "program_path",
    "run_in_terminal",
    "run_process",
    "run_quietly",
    "working_bwrap",
]

STDERR_TAIL = 16_384


@frozen
class ProcessOrder:
    """What to run, where, and for how long. `env` is the complete environment."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    log: Path  # the raw bytes of stdout and stderr are appended to it
    marker: str  # the owner, in the environment of all descendants
    stdin: bytes = b""
    timeout_s: float = 1800.0
    idle_timeout_s: float = 600.0
    sandbox: Sandbox = "auto"
    allowed: Allowed = EVERYTHING  # what it may reach, where a sandbox can enforce it


async def run_process(
    order: ProcessOrder,
    *,
    on_started: Callable[[int], None],
    on_output: Take,
    on_errors: Take | None = None,
    talk: Talk | None = None,
) -> ProcessEnd:
    """Run a program to its end. When this returns or raises, no descendant is alive.

    `on_output` gets its stdout and `on_errors` its stderr. With `talk`, its stdin comes from there
    and stays open until `talk` is closed.
    """
    if missing := _what_is_missing(order):
        return missing
    try:
        wrapper = await _load_wrapper(order)
        with Log(order.log) as log:
            child = _spawn(order, wrapper)
            talk = talk or _whole_input(order.stdin)
            takes = (on_output, on_errors or _ignore)
            return await _accompany(child, order, log, on_started, takes, talk=talk)
    except CrewError as error:
        message = f"{error.message} ({error.hint})" if error.hint else error.message
        return ProcessEnd(code=126, reason="failed", message=message)


def program_path(name: str, env: Mapping[str, str]) -> str | None:
    """The path of the program that this environment would start."""
    return shutil.which(name, path=env.get("PATH", os.defpath))


@functools.cache
def working_bwrap() -> str | None:
    """The path of bubblewrap, if it can create its namespaces here."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return None
    return bwrap if _closed_by_seal(bwrap) or _starts(bwrap) else None


@functools.cache
def _closed_by_seal(bwrap: str) -> frozenset[str]:
    """What a seal closes; nothing if this bubblewrap needs the rights of its owner to start."""
    return closed_by_seal() if sealed(lambda: _starts(bwrap)) else frozenset()


def _starts(bwrap: str) -> bool:
    probe = (bwrap, *PROBE, "--", "true")
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        return subprocess.run(probe, capture_output=True, check=False, timeout=20).returncode == 0
    return False


def become(argv: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process with another program, which keeps the terminal and the pid."""
    sys.stdout.flush()
    os.execvpe(argv[0], tuple(argv), environment)  # noqa: S606 - a person asked for exactly this one


def load_wrapper(sandbox: Sandbox, allowed: Allowed) -> Wrapper:
    """What confines programs on this machine. Raises if `sandbox` or `allowed` needs more."""
    is_on = sandbox != "off"
    bwrap = working_bwrap() if is_on else None
    closed = _closed_by_seal(bwrap) if bwrap else frozenset[str]()
    wrapper = Wrapper(bwrap=bwrap, has_seatbelt=is_on and has_seatbelt(), closed=closed)
    if wrapper == Wrapper() and is_on and sandbox != "auto":
        raise CrewError(
            f'no sandbox works here, and [sandbox] mode = "{sandbox}" runs nothing without one',
            hint='install bubblewrap and allow user namespaces, or set mode = "auto"',
        )
    if unmet := unmet_limit(wrapper, allowed):
        raise CrewError(unmet, hint="remove that key, or install bubblewrap")
    return wrapper


def is_confined(order: ProcessOrder) -> bool:
    """Whether a sandbox confines this program here; it has been started once already."""
    return load_wrapper(order.sandbox, order.allowed) != Wrapper()


async def _load_wrapper(order: ProcessOrder) -> Wrapper:
    is_known = working_bwrap.cache_info().currsize or order.sandbox == "off"
    if is_known:
        return load_wrapper(order.sandbox, order.allowed)
    return await asyncio.to_thread(load_wrapper, order.sandbox, order.allowed)


def _what_is_missing(order: ProcessOrder) -> ProcessEnd | None:
    if not order.cwd.is_dir():
        return ProcessEnd(code=126, reason="failed", message=f"the folder {order.cwd} is gone")
    named = order.argv[0]
    program = str(order.cwd / named) if "/" in named else named
    if program_path(program, order.env) is None:
        message = f"the program {named!r} is not installed"
        return ProcessEnd(code=127, reason="not_found", message=message)
    return None


def _spawn(order: ProcessOrder, wrapper: Wrapper) -> Child:
    """Start the program with one more pipe: bubblewrap's messages or the reaper's lifeline."""
    read_end, write_end = os.pipe()
    ours, theirs = (read_end, write_end) if wrapper.bwrap else (write_end, read_end)
    try:
        with copies_opened(order.allowed) as (mounts, copy_fds):
            argv = start_command(
                order.argv,
                order.allowed,
                mounts,
                wrapper=wrapper,
                cwd=order.cwd,
                pipe_fd=theirs,
                copy_fds=copy_fds,
            )
            start = functools.partial(_popen, argv, order, (theirs, *copy_fds))
            top = sealed(start) if wrapper.seals(order.allowed) else start()
    except (
        OSError,
        ValueError,
    ) as error:  # an argument too long or with a NUL, or no more processes
        os.close(ours)
        raise CrewError(
            f"{order.argv[0]} cannot be started: {error}", hint="shorten its arguments"
        ) from error
    finally:
        os.close(theirs)
    os.set_blocking(ours, False)
    pipe = {"info": ours} if wrapper.bwrap else {"lifeline": ours}
    return Child(top=top, marker=order.marker, **pipe)


@effect("agents.spawn")
def _popen(
    argv: tuple[str, ...], order: ProcessOrder, fds: tuple[int, ...]
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        argv,
        cwd=order.cwd,
        env={**order.env, MARKER_VARIABLE: order.marker},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        pass_fds=fds,
        start_new_session=True,
    )


async def _accompany(
    child: Child,
    order: ProcessOrder,
    log: Log,
    on_started: Callable[[int], None],
    takes: tuple[Take, Take],
    *,
    talk: Talk,
) -> ProcessEnd:
    tail, (on_output, on_errors) = Tail(STDERR_TAIL), takes

    def on_stdout(chunk: bytes) -> None:
        log.append(chunk)
        on_output(chunk)

    def on_stderr(chunk: bytes) -> None:
        log.append(chunk)
        tail.add(chunk.decode(errors="replace"))
        on_errors(chunk)

    pipes = Pipes(child.top, talk=talk, on_stdout=on_stdout, on_stderr=on_stderr)
    exited = asyncio.ensure_future(exit_of(child.top))
    try:
        on_started(child.top.pid)
        reason = await _until_the_end(order, pipes, talk, exited)
    finally:
        await even_if_cancelled(end(child, pipes, exited))
    if pipes.broken.done():
        raise pipes.broken.result()
    limits = {"timeout": order.timeout_s, "stalled": order.idle_timeout_s}
    return process_end(reason, child.top.returncode, limits=limits, stderr_tail=tail.text)


def _ignore(_chunk: bytes) -> None:
    """Take output that is of no interest."""


def _whole_input(content: bytes) -> Talk:
    talk = Talk(content)
    talk.close()
    return talk


async def _until_the_end(
    order: ProcessOrder, pipes: Pipes, talk: Talk, exited: "asyncio.Task[None]"
) -> Reason:
    """Wait until the program ends, reaches a limit, or its output cannot be written."""
    now = asyncio.get_running_loop().time
    ends_at = now() + order.timeout_s
    while not (exited.done() or pipes.broken.done()):
        talk.changed.clear()
        limit_at, reason = min(_limits(order, pipes, talk, ends_at))
        if now() >= limit_at:
            return reason
        changed = asyncio.ensure_future(talk.changed.wait())
        first: set[asyncio.Future[Any]] = {exited, pipes.broken, changed}
        await asyncio.wait(first, timeout=limit_at - now(), return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()
    return "exited"


def _limits(
    order: ProcessOrder, pipes: Pipes, talk: Talk, ends_at: float
) -> Iterator[tuple[float, Reason]]:
    """Each deadline of the program, with the reason to record if it is exceeded."""
    yield ends_at, "timeout"
    if not talk.is_waiting:
        quiet_since = max(pipes.last_output_at, talk.waited_until)
        yield quiet_since + order.idle_timeout_s, "stalled"
    if talk.lingers_until is not None:
        yield talk.lingers_until, "lingered"


@effect("agents.detach")
def start_detached(argv: tuple[str, ...], *, log: Path) -> int:
    """Start a program that outlives us, in its own session. Its output goes to the log."""
    output = open_private(log, os.O_WRONLY | os.O_APPEND)
    try:
        return os.posix_spawn(
            argv[0],
            argv,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, output, 1),
                (os.POSIX_SPAWN_DUP2, output, 2),
            ],
            setsid=True,
        )
    finally:
        os.close(output)


def run_in_terminal(
    argv: tuple[str, ...], *, cwd: Path, env: Mapping[str, str], keep_output: bool = False
) -> tuple[int, bytes]:
    """Run a program that owns our terminal. Returns its exit code, and its output if kept.

    Ctrl-C is meant for the program, such as a pager. We receive it too, and only wait.
    """
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGQUIT)]
    for number, _ in handlers:
        # Not SIG_IGN, which the program would inherit.
        signal.signal(number, lambda *_: None)
    try:
        output = subprocess.PIPE if keep_output else None
        done = subprocess.run(argv, cwd=cwd, env=env, stdout=output, check=False)
    finally:
        for number, handler in handlers:
            signal.signal(number, handler)
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return code, done.stdout or b""


def run_quietly(
    argv: tuple[str, ...], *, cwd: Path, env: Mapping[str, str], tail: int = 4096
) -> tuple[int, bytes]:
    """Run a program in its own session, without a terminal; its exit code and its last output.

    What it starts and leaves behind, such as an editor with a window, lives on.
    """
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            check=False,
        )
        output.seek(-min(tail, output.seek(0, os.SEEK_END)), os.SEEK_END)
        last = output.read()
    return (done.returncode if done.returncode >= 0 else 128 - done.returncode), last


def output_of(
    argv: tuple[str, ...],
    *,
    stdin: bytes,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
) -> tuple[int | None, bytes, bytes]:
    """Run a short program: its exit code, its output and its errors.

    The exit code of a program that cannot be started, or took longer and was ended, is None.
    """
    try:
        done = subprocess.run(
            argv, input=stdin, capture_output=True, timeout=timeout_s, check=False, env=env
        )
    except (subprocess.TimeoutExpired, OSError):
        return None, b"", b""
    return done.returncode, done.stdout, done.stderr
