"""The terminal view in a pseudo terminal: its bytes with their times, and keys."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

from bench.scene import PROJECT

COLUMNS, LINES = 160, 50
PATIENCE_S = 60.0
CREW = (sys.executable, "-m", "crew")


class PtyView:
    """A running view; `seen` are its bytes so far, which `forget` drops."""

    def __init__(self, repo: Path, env: Mapping[str, str]) -> None:
        self.seen = b""
        self.began = time.perf_counter()
        self.pid, self.handle = pty.fork()
        if self.pid == 0:
            os.chdir(repo)
            mine = {
                "TERM": "xterm-256color",
                "COLORTERM": "truecolor",
                "PYTHONPATH": str(PROJECT / "src"),
            }
            os.execve(CREW[0], list(CREW), {**env, **mine})
        size = struct.pack("HHHH", LINES, COLUMNS, 0, 0)
        fcntl.ioctl(self.handle, termios.TIOCSWINSZ, size)

    def until(self, pattern: bytes) -> float:
        """Read until this is there; the time at which its last bytes came."""
        wanted, give_up_at = re.compile(pattern), time.monotonic() + PATIENCE_S
        while wanted.search(self.seen) is None:
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"{pattern!r} is not in {self.seen[-2000:]!r}")
            self.read(0.5)
        return time.perf_counter()

    def read(self, wait_s: float) -> bytes:
        if not select.select([self.handle], [], [], wait_s)[0]:
            return b""
        piece = os.read(self.handle, 1_000_000)
        self.seen += piece
        return piece

    def rest(self, quiet_s: float = 0.3) -> None:
        """Read until nothing more comes, or for a second of something that never ends."""
        give_up_at = time.monotonic() + 1.0
        while self.read(quiet_s) and time.monotonic() < give_up_at:
            pass
        self.seen = b""

    def press(self, key: bytes, pattern: bytes) -> float:
        """How many seconds pass from a key until this is painted."""
        self.seen = b""
        began = time.perf_counter()
        os.write(self.handle, key)
        return self.until(pattern) - began

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        with contextlib.suppress(OSError):
            while self.read(5.0):
                pass
        os.waitpid(self.pid, 0)
        os.close(self.handle)
