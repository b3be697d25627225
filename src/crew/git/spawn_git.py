"""Runs git and reads its output, with a quarter of the CPU time of `subprocess`.

No Python code runs in the new process before git, so our other threads are delayed less. Every
descriptor that Python opens is closed in the new process automatically.

Kept: with `subprocess` a step costs 20% more of crew's CPU time (`python -m bench cpu`).
"""

import fcntl
import io
import os
import selectors
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from crew.domain.kernel.frozen import frozen

_PIECE = 65_536
_FIRST_FREE = 3
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


_running: set[int] = set()
_is_ending = threading.Event()
_reaping = threading.Lock()


class Ended(Exception):
    """crew ended this git, or did not start it, because crew itself ends."""


@frozen
class GitOutput:
    """The output of a program, and its exit code: negative for the signal that ended it."""

    code: int
    out: bytes
    err: bytes


def run(
    argv: tuple[str, ...],
    *,
    env: Mapping[str, str],
    stdin: bytes | Path | None,
    timeout_s: float,
    keep_open: int | None,
    most: int | None = None,
) -> GitOutput:
    """Run a program to its end. Kills it after the limit and raises `TimeoutError`.

    `keep_open` is a descriptor that stays open in it. A program that prints `most` bytes is killed.
    """
    with _input(stdin) as source, _pipe() as (out_reader, out), _pipe() as (err_reader, err):
        pid = _start(argv, env, (source, out, err), keep_open)
        out.close()
        err.close()
        try:
            ends_at = time.monotonic() + timeout_s
            output = _read((out_reader, err_reader), ends_at=ends_at, most=most)
            if most is not None and len(output[0]) >= most:
                os.killpg(pid, signal.SIGKILL)
        except BaseException:
            os.killpg(pid, signal.SIGKILL)  # with a program that it waits for, such as gpg
            reap(pid)
            raise
    code = reap(pid)
    if code == -signal.SIGKILL and _is_ending.is_set():
        raise Ended
    return GitOutput(code=code, out=bytes(output[0]), err=bytes(output[1]))


def end_running() -> None:
    """Kill every running git process, and start no other, until `allow` is called."""
    _is_ending.set()
    with _reaping:
        for pid in _running:
            os.killpg(pid, signal.SIGKILL)  # with the programs that it started


def allow() -> None:
    """Let gits start again, for the next runner of this process."""
    _is_ending.clear()


class StartedGit:
    """A program that is started before its input is known, and answers line by line."""

    def __init__(
        self, pid: int, write_end: io.FileIO, read_end: io.FileIO, *, timeout_s: float
    ) -> None:
        self._pid = pid
        self._stdin = write_end
        self._stdout = read_end
        self._timeout_s = timeout_s
        self._code: int | None = None

    def ask(self, text: bytes) -> bytes:
        """Its answer: one or more lines without the last line end, or empty."""
        if self._code is not None:
            return b""
        try:
            self._stdin.write(text)
        except BrokenPipeError:
            return b""
        ends_at = time.monotonic() + self._timeout_s
        answer = b""
        with selectors.PollSelector() as awaited:
            awaited.register(self._stdout, selectors.EVENT_READ)
            while not answer.endswith(b"\n"):
                if not awaited.select(max(0.0, ends_at - time.monotonic())):
                    return b""
                piece = os.read(self._stdout.fileno(), _PIECE)
                if not piece:
                    break
                answer += piece
        return answer.rstrip(b"\n")

    def end(self) -> int:
        """Close its input, wait for its end, and return its exit code. Safe to repeat."""
        if self._code is None:
            self._stdin.close()
            try:
                _read((self._stdout,), ends_at=time.monotonic() + self._timeout_s)
            except BaseException as error:
                os.kill(self._pid, signal.SIGKILL)
                if not isinstance(error, TimeoutError):
                    raise
            finally:
                self._code = reap(self._pid)
        return self._code


@contextmanager
def started_git(
    argv: tuple[str, ...],
    *,
    env: Mapping[str, str],
    timeout_s: float,
    keep_open: int | None,
) -> Iterator[StartedGit]:
    """Start a program that waits for its input. It has ended when the block ends.

    Its answers include its stderr.
    """
    with _pipe() as (read_end, out), _pipe() as (source, write_end):
        pid = _start(argv, env, (source, out, out), keep_open)
        source.close()
        out.close()
        git = StartedGit(pid, write_end, read_end, timeout_s=timeout_s)
        try:
            yield git
        finally:
            git.end()


def reap(pid: int) -> int:
    """Wait for a child's end and return its exit code."""
    if hasattr(os, "waitid"):  # until `waitpid` the number belongs to this child
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with _reaping:
            return _reaped(pid)
    return _reaped(pid)


def _reaped(pid: int) -> int:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    _running.discard(pid)
    return code


def _start(
    argv: tuple[str, ...],
    env: Mapping[str, str],
    files: tuple[io.FileIO, ...],
    keep_open: int | None,
) -> int:
    placed = [(os.POSIX_SPAWN_DUP2, file.fileno(), place) for place, file in enumerate(files)]
    if keep_open is not None:
        # A duplicate stays open. Duplicating a descriptor onto itself does not work everywhere.
        place = _FIRST_FREE if keep_open != _FIRST_FREE else _FIRST_FREE + 1
        placed.append((os.POSIX_SPAWN_DUP2, keep_open, place))
    with _reaping:
        if _is_ending.is_set():
            raise Ended
        pid = os.posix_spawnp(
            argv[0],
            argv,
            env,
            file_actions=placed,
            setsid=True,  # Ctrl-C in the terminal must not interrupt our git commands
            setsigdef=_IGNORED_BY_PYTHON,
        )
        _running.add(pid)
    return pid


@contextmanager
def _input(content: bytes | Path | None) -> Iterator[io.FileIO]:
    """The input as a file, which accepts any size at once."""
    if not isinstance(content, bytes):
        source = content or os.devnull
        with io.FileIO(_above_stdio(os.open(source, os.O_RDONLY | os.O_CLOEXEC))) as file:
            yield file
        return
    import tempfile  # noqa: PLC0415 - slow to load, and most git commands get no input

    with tempfile.TemporaryFile(buffering=0) as kept:
        kept.write(content)
        kept.seek(0)
        with io.FileIO(fcntl.fcntl(kept, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)) as file:
            yield file


@contextmanager
def _pipe() -> Iterator[tuple[io.FileIO, io.FileIO]]:
    """The read end and the write end of a pipe."""
    reader, writer = os.pipe()
    with (
        io.FileIO(_above_stdio(reader)) as read_end,
        io.FileIO(_above_stdio(writer), "w") as write_end,
    ):
        yield read_end, write_end


def _above_stdio(descriptor: int) -> int:
    """Avoid low descriptors: with a closed stdin, git would read from its own output pipe."""
    if descriptor >= _FIRST_FREE:
        return descriptor
    higher: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
    os.close(descriptor)
    return higher


def _read(
    pipes: tuple[io.FileIO, ...], *, ends_at: float, most: int | None = None
) -> list[bytearray]:
    """The output of each pipe, read until all are closed or the first has `most` bytes."""
    output = [bytearray() for _ in pipes]
    with selectors.PollSelector() as still_open:
        for pipe, pieces in zip(pipes, output, strict=True):
            still_open.register(pipe, selectors.EVENT_READ, pieces)
        while still_open.get_map():
            ready = still_open.select(max(0.0, ends_at - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE)
                key.data.extend(piece)
                if not piece:
                    still_open.unregister(key.fileobj)
            if most is not None and len(output[0]) >= most:
                break
    return output
