"""Runs the commands of a page."""

import os
import subprocess
from pathlib import Path

from front.conftest import CREW, PATIENCE_S


def shell(commands: str, root: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run the commands of a page as a person would type them, with this crew on the path."""
    path = f"{CREW.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=root,
        env={**os.environ, "PATH": path, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done
