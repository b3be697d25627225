"""How a step's program is wrapped, so that everything it starts ends with it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from crew.agents import keeper

Sandbox = Literal["auto", "bwrap", "off"]

PROBE_ARGUMENTS = ("--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--die-with-parent")


def in_pid_namespace(
    argv: Sequence[str], *, bwrap: str, cwd: Path, info_fd: int, read_only: Sequence[Path] = ()
) -> tuple[str, ...]:
    """Below bubblewrap: the kernel ends the whole namespace with its first process.

    A session of its own keeps a script's `kill 0` away from bubblewrap itself.
    """
    own = ("--new-session", "--info-fd", str(info_fd), "--chdir", str(cwd))
    held = [word for path in read_only for word in ("--ro-bind", str(path), str(path))]
    return (bwrap, *PROBE_ARGUMENTS, *held, *own, "--", *argv)


def below_keeper(argv: Sequence[str], *, lifeline_fd: int) -> tuple[str, ...]:
    """Below our own keeper, where there is no bubblewrap."""
    return (sys.executable, "-I", "-S", keeper.__file__, str(lifeline_fd), *argv)
