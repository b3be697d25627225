"""A program on a terminal of its own, as a person sees it and types into it."""

import contextlib
import os
import pty
import select
import signal
import time
from collections.abc import Sequence
from pathlib import Path

PATIENCE_S = 60.0


class Screen:
    """`shown` is all that the program has printed so far."""

    def __init__(self, argv: Sequence[str | Path], *, cwd: Path, **env: str) -> None:
        self.shown = ""
        self.pid, self.handle = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(argv[0], [str(word) for word in argv], os.environ | {"TERM": "xterm", **env})

    def until(self, words: str) -> None:
        give_up_at = time.monotonic() + PATIENCE_S
        while words not in self.shown:
            assert time.monotonic() < give_up_at, self.shown
            self._read(0.2)

    def type(self, text: str) -> None:
        os.write(self.handle, text.encode())

    def ended(self) -> int:
        """Read until the program has ended; its exit code."""
        give_up_at = time.monotonic() + PATIENCE_S
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            while self._read(0.0 if pid else 0.05):
                pass
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            assert time.monotonic() < give_up_at, self.shown

    def _read(self, timeout_s: float) -> bool:
        """Whether there was something to read."""
        piece = b""
        if select.select([self.handle], [], [], timeout_s)[0]:
            with contextlib.suppress(OSError):
                piece = os.read(self.handle, 65536)
        self.shown += piece.decode(errors="replace")
        return bool(piece)

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.handle)
