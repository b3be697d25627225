"""The three pipes to a child: output is passed on in pieces as it comes, input is fed alongside."""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from crew.domain.effects import effect
from crew.domain.errors import CrewError

CHUNK = 65_536

Take = Callable[[bytes], None]


class Log:
    """A file that raw output is appended to; a full disk is an error, never a silent gap."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        try:
            self._file = _open_log(self._path)
        except OSError as error:
            raise self._failure(error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)

    def append(self, chunk: bytes) -> None:
        try:
            _append(self._file, chunk)
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> CrewError:
        return CrewError(
            f"the log {self._path} cannot be written: {error.strerror}",
            hint="make room on the disk or mend the folder's permissions, then run it again",
        )


@effect("agents.open_log")
def _open_log(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


@effect("agents.append_log")
def _append(file: int, chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        left = left[os.write(file, left) :]


class Pipes:
    """What goes in and comes out of one child; holds no more than one chunk at a time."""

    def __init__(
        self, child: subprocess.Popen[bytes], *, stdin: bytes, on_stdout: Take, on_stderr: Take
    ) -> None:
        assert child.stdin
        assert child.stdout
        assert child.stderr
        self._loop = asyncio.get_running_loop()
        self.last_output_at = self._loop.time()
        self.broken: asyncio.Future[Exception] = self._loop.create_future()
        self._drained = asyncio.Event()
        self._outputs: set[IO[bytes]] = set()
        self._stdin: IO[bytes] | None = child.stdin
        self._input = memoryview(stdin)
        self._listen(child.stdout, on_stdout)
        self._listen(child.stderr, on_stderr)
        os.set_blocking(child.stdin.fileno(), False)
        self._loop.add_writer(child.stdin.fileno(), self._write)

    async def drain(self, *, timeout_s: float) -> None:
        """Wait for the end of the output; somebody outside may hold a pipe, hence the limit."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._drained.wait()

    def close(self) -> None:
        self._close_stdin()
        for pipe in tuple(self._outputs):
            self._close_output(pipe)

    def _listen(self, pipe: IO[bytes], take: Take) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._outputs.add(pipe)
        self._loop.add_reader(pipe.fileno(), self._read, pipe, take)

    def _read(self, pipe: IO[bytes], take: Take) -> None:
        try:
            chunk = os.read(pipe.fileno(), CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._close_output(pipe)
            return
        self.last_output_at = self._loop.time()
        try:
            take(chunk)
        except Exception as error:  # noqa: BLE001 - whoever awaits the child hears of it
            self._close_output(pipe)
            if not self.broken.done():
                self.broken.set_result(error)

    def _write(self) -> None:
        """Feed what the child takes; a child that closes its input has had enough."""
        assert self._stdin
        try:
            while self._input:
                taken = os.write(self._stdin.fileno(), self._input[:CHUNK])
                self._input = self._input[taken:]
        except BlockingIOError:
            return
        except OSError:
            self._input = memoryview(b"")
        self._close_stdin()

    def _close_stdin(self) -> None:
        if self._stdin:
            self._loop.remove_writer(self._stdin.fileno())
            self._stdin.close()
            self._stdin = None

    def _close_output(self, pipe: IO[bytes]) -> None:
        self._loop.remove_reader(pipe.fileno())
        pipe.close()
        self._outputs.discard(pipe)
        if not self._outputs:
            self._drained.set()
