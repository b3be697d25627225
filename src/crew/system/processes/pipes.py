"""The three pipes of a child: forwards its output in chunks while it writes the input."""

import asyncio
import contextlib
import fcntl
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import IO

CHUNK = 65_536
PIPE_BYTES = 1_048_576
"""The room in a pipe of output: a program that prints much waits less often for us."""

Take = Callable[[bytes], None]


class Talk:
    """The input of a running child, written as fast as the child reads it, until `close`.

    A caller that sends much awaits `taken` in between. Input that a child no longer reads is
    dropped. Used for one child, on the event loop that runs it.
    """

    def __init__(self, first: bytes = b"") -> None:
        self.changed = asyncio.Event()  # a limit may have changed
        self.is_closed = False  # no more input follows
        self.lingers_until: float | None = None  # a child that still runs at this time is ended
        self.waited_until = 0.0  # its silence before this time does not count
        self._questions = 0
        self._left = bytearray(first)
        self._taken = asyncio.Event()
        self._feed: Callable[[], None] = lambda: None

    def send(self, content: bytes) -> None:
        """Send bytes to the child. After `close` they are dropped."""
        if not self.is_closed:
            self._left += content
            self._taken.clear()
            self._feed()

    def close(self, *, linger_s: float | None = None) -> None:
        """End the input. A child that still runs after `linger_s` is ended.

        The last call counts.
        """
        self.is_closed = True
        now = asyncio.get_running_loop().time()
        self.lingers_until = None if linger_s is None else now + linger_s
        self._feed()
        self.changed.set()

    async def taken(self) -> None:
        """Wait until the child has read everything that was sent so far."""
        if self._left:
            await self._taken.wait()

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Do not count the child's silence while it waits for an answer."""
        self._questions += 1
        self.changed.set()
        try:
            yield
        finally:
            self._questions -= 1
            self.waited_until = asyncio.get_running_loop().time()
            self.changed.set()

    @property
    def is_waiting(self) -> bool:
        return self._questions > 0

    def feed_by(self, feed: Callable[[], None]) -> None:
        self._feed = feed
        feed()

    def write_to(self, pipe: int) -> bool:
        """Write as much as the pipe accepts; true once the pipe can be closed."""
        try:
            while self._left:
                taken = os.write(pipe, self._left[:CHUNK])
                del self._left[:taken]
        except BlockingIOError:
            return False
        except OSError:  # the child has closed its input
            self.is_closed = True
            self._left.clear()
        self._taken.set()
        return self.is_closed

    def end(self) -> None:
        """Drop the remaining input, since the child's stdin is closed."""
        self.is_closed = True
        self._left.clear()
        self._taken.set()

    @property
    def has_more(self) -> bool:
        return bool(self._left)


class Pipes:
    """Input and output of one child. Holds at most one chunk of output at a time."""

    def __init__(
        self, child: subprocess.Popen[bytes], *, talk: Talk, on_stdout: Take, on_stderr: Take
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
        self._talk = talk
        self._listen(child.stdout, on_stdout)
        self._listen(child.stderr, on_stderr)
        os.set_blocking(child.stdin.fileno(), False)
        talk.feed_by(self._feed)

    async def drain(self, *, timeout_s: float) -> None:
        """Wait for the end of the output. Another process may hold a pipe open, hence the limit."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._drained.wait()

    def close(self) -> None:
        self._close_stdin()
        for pipe in tuple(self._outputs):
            self._close_output(pipe)

    def _listen(self, pipe: IO[bytes], take: Take) -> None:
        os.set_blocking(pipe.fileno(), False)
        _enlarge(pipe)
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
        except Exception as error:  # noqa: BLE001 - raised where the child is awaited
            self._close_output(pipe)
            if not self.broken.done():
                self.broken.set_result(error)

    def _feed(self) -> None:
        """Write as soon as the child can read."""
        if self._stdin:
            self._loop.add_writer(self._stdin.fileno(), self._write)

    def _write(self) -> None:
        assert self._stdin
        if self._talk.write_to(self._stdin.fileno()):
            self._close_stdin()
        elif not self._talk.has_more:
            self._loop.remove_writer(self._stdin.fileno())

    def _close_stdin(self) -> None:
        if self._stdin:
            self._loop.remove_writer(self._stdin.fileno())
            self._stdin.close()
            self._stdin = None
            self._talk.end()

    def _close_output(self, pipe: IO[bytes]) -> None:
        self._loop.remove_reader(pipe.fileno())
        pipe.close()
        self._outputs.discard(pipe)
        if not self._outputs:
            self._drained.set()


def _enlarge(pipe: IO[bytes]) -> None:
    """Linux alone can; a user may have only so much room in pipes."""
    with contextlib.suppress(AttributeError, OSError):
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
