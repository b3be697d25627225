"""Wraps the command of a step, so that all its descendants end with it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from crew.system.processes import reaper

Sandbox = Literal["auto", "bwrap", "off"]

PROBE_ARGUMENTS = ("--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--die-with-parent")


def in_pid_namespace(
    argv: Sequence[str],
    *,
    bwrap: str,
    cwd: Path,
    info_fd: int,
    read_only: Sequence[Path] = (),
    writable: Sequence[Path] = (),
) -> tuple[str, ...]:
    """Run under bubblewrap: the kernel ends the whole namespace with its first process.

    A separate session keeps a script's `kill 0` away from bubblewrap. A rule for a folder covers
    everything below it, except paths with a rule of their own.
    """
    own = ("--new-session", "--info-fd", str(info_fd), "--chdir", str(cwd))
    return (bwrap, *PROBE_ARGUMENTS, *_binds(read_only, writable), *own, "--", *argv)


def with_held_paths(
    argv: Sequence[str], *, bwrap: str, read_only: Sequence[Path], writable: Sequence[Path]
) -> tuple[str, ...]:
    """Run under bubblewrap too, but with the caller's terminal and processes."""
    return (bwrap, "--dev-bind", "/", "/", *_binds(read_only, writable), "--", *argv)


def _binds(read_only: Sequence[Path], writable: Sequence[Path]) -> list[str]:
    rules = [*((path, "--ro-bind") for path in read_only), *((path, "--bind") for path in writable)]
    binds = sorted(rules, key=lambda one: len(one[0].parts))
    return [word for path, flag in binds for word in (flag, str(path), str(path))]


def below_reaper(argv: Sequence[str], *, lifeline_fd: int) -> tuple[str, ...]:
    """Run under our own reaper, if there is no bubblewrap."""
    return (sys.executable, "-I", "-S", reaper.__file__, str(lifeline_fd), *argv)
