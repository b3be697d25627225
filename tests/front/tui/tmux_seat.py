"""A person at a shell in a real tmux: types keys, and reads the screen as it stands."""

import shutil
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from front.screen import PATIENCE_S

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


class TmuxSeat:
    """A shell in a tmux server of its own."""

    def __init__(self, cwd: Path, *, columns: int = 80, lines: int = 24) -> None:
        self._name = f"crew-test-{uuid.uuid4().hex[:8]}"
        size = ("-x", str(columns), "-y", str(lines))
        shell = ("env", "PS1=ready> ", "sh", "-i")
        self.tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(cwd), *shell)
        self.sees("ready>")

    def tmux(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._name, *args], capture_output=True, text=True, check=True
        )
        return done.stdout

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names, such as Enter, C-z, or a letter."""
        for name in names:
            self.tmux("send-keys", name)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def run(self, line: str) -> None:
        self.type(line)
        self.keys("Enter")

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def sees(self, words: str) -> str:
        return self.until(lambda shown: words in shown)

    def until(self, is_so: Callable[[str], object]) -> str:
        give_up_at = time.monotonic() + PATIENCE_S
        while not is_so(shown := self.screen()):
            assert time.monotonic() < give_up_at, shown
            time.sleep(0.05)
        return shown

    @property
    def modes(self) -> tuple[bool, bool, bool]:
        """Whether the other screen is shown, the cursor is, and a program wants the mouse."""
        found = self.tmux("display", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}")
        alternate, cursor, mouse = (one == "1" for one in found.split())
        return alternate, cursor, mouse

    def end(self) -> None:
        self.tmux("kill-server")
