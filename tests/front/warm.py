"""A process with all of crew loaded, of which every call is a fork: as a new one, but at once.

A call is a process of its own with its own arguments, folder, environment and streams, and it runs
the real entry point and ends as the interpreter ends. Only Python's start and the imports are
spared, which are most of what a short command costs.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import random
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

READ_AT_START = ("PYTHON", "LC_", "LANG", "CREW_CRASH_AT")
"""Variables that a process reads when it starts: these need a new one."""


DELIVERY_PATIENCE_S = 1.0
"""`run --drain` waits this long, not ten seconds, for a delivery that a person holds up."""


@dataclass(slots=True)
class WarmCrew:
    """The near end; `close` ends the process."""

    process: "subprocess.Popen[bytes]"
    link: socket.socket

    def run(
        self, args: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: str, limit_s: float
    ) -> "subprocess.CompletedProcess[str]":
        """As `subprocess.run` with all three streams captured."""
        give_up_at = time.monotonic() + limit_s
        order = {"args": args, "cwd": str(cwd), "env": dict(env)}
        in_, out, err = os.pipe(), os.pipe(), os.pipe()
        reply, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with reply:
            with told:
                theirs = (in_[0], out[1], err[1], told.fileno())
                socket.send_fds(self.link, [json.dumps(order).encode()], theirs)
            for one in theirs[:3]:
                os.close(one)
            reply.settimeout(limit_s)
            pid = int(reply.recv(32))
            try:
                said = _talk(in_[1], out[0], err[0], stdin.encode(), give_up_at=give_up_at)
                code = int(reply.recv(32))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(args, code, *(text.decode() for text in said))

    def close(self) -> None:
        self.link.close()
        self.process.wait()


def start_warm_crew(env: Mapping[str, str]) -> WarmCrew:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with far:
        process = subprocess.Popen(
            [sys.executable, __file__, str(far.fileno())], env=env, pass_fds=[far.fileno()]
        )
    return WarmCrew(process, near)


def _talk(in_: int, out: int, err: int, text: bytes, *, give_up_at: float) -> tuple[bytes, bytes]:
    """Write all of the text, and read both others to their ends."""
    heard = {out: b"", err: b""}
    with selectors.DefaultSelector() as waiting:
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
                    text, is_over = _written(in_, text)
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
    """Fork for every order; returns only in a fork, with the arguments it is to run."""
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
    args: list[str] = order["args"]
    sys.argv = [str(Path(sys.executable).with_name("crew")), *args]
    return args


def _load_everything() -> None:
    """All that a short command needs; what serves agents takes longer to load than to start."""
    crew = importlib.import_module("crew")
    for module in pkgutil.walk_packages(crew.__path__, "crew."):
        is_program = (
            module.name.endswith("__main__") or module.name == "crew.system.processes.reaper"
        )
        if not is_program and not module.name.startswith("crew.front.mcp"):
            importlib.import_module(module.name)
    importlib.import_module("crew.runner.runner").DELIVERY_PATIENCE_S = DELIVERY_PATIENCE_S
    gc.collect()
    gc.freeze()  # forks would copy every page on which the collector leaves its marks


def _end(leaving: SystemExit) -> NoReturn:
    """As the interpreter ends, but for taking all modules apart, which would copy them first."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BrokenPipeError, ValueError):
            stream.flush()
    os._exit(leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code)))


if __name__ == "__main__":
    _load_everything()
    from crew.front.cli.main import main

    arguments = serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        main(arguments)
    except SystemExit as leaving:
        _end(leaving)
