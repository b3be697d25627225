"""A process with all of crew loaded, of which every start is a fork: as a new one, but at once.

A start is a process of its own with its own arguments, folder, environment and streams. It runs
`crew`, a script or the text of a program, as `python` would, and ends as the interpreter ends. Only
Python's start and the imports are spared, which are most of what a short command costs.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import random
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TextIO

from crew.system import crash_points
from processes import VARIABLE

READ_AT_START = ("PYTHON", "LC_", "LANG")
"""Variables that a process reads when it starts: these need a new one."""


PATIENCE_S = 150.0
"""How long a process may take before it hangs, on a machine that has much else to do."""

DELIVERY_PATIENCE_S = 1.0
"""`run --drain` waits this long, not ten seconds, for a delivery that a person holds up."""


@dataclass(slots=True)
class Forked:
    """A process that was started, with as much of `subprocess.Popen` as the tests use."""

    args: Sequence[str]
    pid: int
    reply: socket.socket
    returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.reply.settimeout(timeout)
            try:
                self.returncode = int(self.reply.recv(32))
            except (TimeoutError, BlockingIOError) as error:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from error
            self.reply.close()
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


@dataclass(slots=True, kw_only=True)
class Piped(Forked):
    """One that says what it has to say into two pipes, as text."""

    stdout: TextIO
    stderr: TextIO

    def communicate(self, timeout: float = PATIENCE_S) -> tuple[str, str]:
        """What is left to read of both, once it has ended; it can be asked for only once."""
        give_up_at = time.monotonic() + timeout
        said = b"", b""
        if not self.stdout.closed:
            with self.stdout, self.stderr:
                out, err = (os.dup(stream.fileno()) for stream in (self.stdout, self.stderr))
                try:
                    said = _talk(None, out, err, b"", give_up_at=give_up_at)
                except TimeoutError as error:
                    raise subprocess.TimeoutExpired(self.args, timeout) from error
        self.wait(timeout=max(0.0, give_up_at - time.monotonic()))
        return said[0].decode(), said[1].decode()


@dataclass(slots=True)
class WarmPython:
    """The near end; `close` ends the process."""

    process: "subprocess.Popen[bytes]"
    link: socket.socket

    def start(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], streams: Sequence[int]
    ) -> Forked:
        """Start `crew …`, `FILE.py …` or `-c TEXT …`; the streams are its stdin, stdout, stderr."""
        order = {"argv": argv, "cwd": str(cwd), "env": dict(env)}
        reply, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with told:
            socket.send_fds(self.link, [json.dumps(order).encode()], (*streams, told.fileno()))
        reply.settimeout(PATIENCE_S)
        return Forked(argv, int(reply.recv(32)), reply)

    def start_piped(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Piped:
        """Start it with nothing to read; its streams can be read while it runs."""
        out, err = os.pipe(), os.pipe()
        with Path(os.devnull).open() as nothing:
            theirs = (nothing.fileno(), out[1], err[1])
            running = self.start(argv, cwd=cwd, env=env, streams=theirs)
        for one in (out[1], err[1]):
            os.close(one)
        return Piped(
            *(argv, running.pid, running.reply), stdout=os.fdopen(out[0]), stderr=os.fdopen(err[0])
        )

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: str = "",
        limit_s: float = PATIENCE_S,
    ) -> "subprocess.CompletedProcess[str]":
        """As `subprocess.run` with all three streams captured."""
        give_up_at = time.monotonic() + limit_s
        in_, out, err = os.pipe(), os.pipe(), os.pipe()
        theirs = (in_[0], out[1], err[1])
        running = self.start(argv, cwd=cwd, env=env, streams=theirs)
        for one in theirs:
            os.close(one)
        try:
            said = _talk(in_[1], out[0], err[0], stdin.encode(), give_up_at=give_up_at)
            code = running.wait(timeout=limit_s)
        except (TimeoutError, subprocess.TimeoutExpired):
            running.kill()
            raise
        return subprocess.CompletedProcess(argv, code, *(text.decode() for text in said))

    def close(self) -> None:
        self.link.close()
        self.process.wait()


@functools.cache
def warm_python(*, serves: bool = False) -> WarmPython:
    """Outlives the test that is the first to need it; one that serves has also the MCP server."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = {name: value for name, value in os.environ.items() if name != VARIABLE}
    argv = [sys.executable, __file__, str(far.fileno()), *(["serves"] if serves else [])]
    with far:
        process = subprocess.Popen(argv, env=env, pass_fds=[far.fileno()])
    started = WarmPython(process, near)
    atexit.register(started.close)
    return started


def _talk(
    in_: int | None, out: int, err: int, text: bytes, *, give_up_at: float
) -> tuple[bytes, bytes]:
    """Write all of the text, if there is a stream for it, and read both others to their ends."""
    heard = {out: b"", err: b""}
    with selectors.DefaultSelector() as waiting:
        if in_ is not None:
            waiting.register(in_, selectors.EVENT_WRITE)
        for stream in heard:
            waiting.register(stream, selectors.EVENT_READ)
        while waiting.get_map():
            left_s = give_up_at - time.monotonic()
            if left_s < 0:
                raise TimeoutError("the command does not end")
            for key, _ in waiting.select(left_s):
                stream = key.fd
                if stream == in_:
                    text, is_over = _written(stream, text)
                else:
                    piece = os.read(stream, 65_536)
                    heard[stream] += piece
                    is_over = not piece
                if is_over:
                    waiting.unregister(stream)
                    os.close(stream)
    return heard[out], heard[err]


def _written(stream: int, text: bytes) -> tuple[bytes, bool]:
    """What is left, and whether that is all there is to do."""
    try:
        text = text[os.write(stream, text[:4096]) :] if text else b""
    except BrokenPipeError:
        return b"", True
    return text, not text


# The far end


def serve(link: socket.socket) -> list[str]:
    """Fork for every order; returns only in a fork, with what it is to run."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody has to wait for the forks
    while True:
        text, handed, _, _ = socket.recv_fds(link, 1 << 20, 4)
        if not text:
            os._exit(0)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            link.close()
            *streams, reply = handed
            pid = os.fork()
            if pid == 0:
                os.close(reply)
                return _become(json.loads(text), streams)
            _watch(pid, streams, reply)
        for one in handed:
            os.close(one)


def _watch(pid: int, streams: Sequence[int], reply: int) -> NoReturn:
    """Tell which process runs the command, and how that ended."""
    for one in streams:
        os.close(one)
    with socket.socket(fileno=reply) as caller, contextlib.suppress(BrokenPipeError):
        caller.send(str(pid).encode())
        caller.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)


def _become(order: Mapping, streams: Sequence[int]) -> list[str]:
    """Turn this fork into what the caller would have started."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        old = getattr(sys, name)
        buffering = 1 if name == "stderr" else -1
        fresh = open(  # noqa: SIM115 - it stays open until the process ends
            old.fileno(), mode, buffering, encoding=old.encoding, errors=old.errors, closefd=False
        )
        setattr(sys, name, fresh)
        setattr(sys, f"__{name}__", fresh)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    random.seed()
    crash_points.arm(os.environ.get("CREW_CRASH_AT", ""))
    argv: list[str] = order["argv"]
    return argv


def _run(argv: Sequence[str]) -> None:
    program, *args = argv
    if program == "crew":
        sys.argv = [str(Path(sys.executable).with_name("crew")), *args]
        importlib.import_module("crew.runner.runner").DELIVERY_PATIENCE_S = DELIVERY_PATIENCE_S
        importlib.import_module("crew.front.cli.main").main(args)
    elif program == "-c":
        text, *sys.argv[1:] = args
        exec(compile(text, "<test>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = [program, *args]
        runpy.run_path(program, run_name="__main__")


def _load_everything(*, serves: bool) -> None:
    """All that a short command needs; what serves agents takes longer to load than to start.

    The terminal view is no short command.
    """
    crew = importlib.import_module("crew")
    for module in pkgutil.walk_packages(crew.__path__, "crew."):
        is_program = (
            module.name.endswith("__main__") or module.name == "crew.system.processes.reaper"
        )
        is_heavy = module.name.startswith("crew.front.mcp") and not serves
        if not (is_program or is_heavy or module.name.startswith("crew.front.tui")):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # forks would copy every page on which the collector leaves its marks


def _end(leaving: SystemExit) -> NoReturn:
    """As the interpreter ends, but for taking all modules apart, which would copy them first."""
    if isinstance(leaving.code, str):
        print(leaving.code, file=sys.stderr)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BrokenPipeError, ValueError):
            stream.flush()
    os._exit(leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code)))


if __name__ == "__main__":
    _load_everything(serves="serves" in sys.argv)
    ordered = serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        _run(ordered)
    except SystemExit as leaving:
        _end(leaving)
    _end(SystemExit(0))
