"""The command that starts a program in its sandbox, so that all its descendants end with it."""

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.system.processes import reaper, terminal_job
from crew.system.sandbox import seal
from crew.system.sandbox.allowed import EVERYTHING, Allowed
from crew.system.sandbox.bubblewrap import bubblewrap
from crew.system.sandbox.mounts import Access, Mount, current_mounts
from crew.system.sandbox.seatbelt import SEATBELT, seatbelt


@frozen
class Wrapper:
    """What this machine confines a program with: bubblewrap, macOS's sandbox, or nothing."""

    bwrap: str | None = None
    has_seatbelt: bool = False
    closed: frozenset[str] = frozenset()  # what a seal around bubblewrap closes

    def seals(self, allowed: Allowed) -> bool:
        """Whether a program that is confined in this way starts sealed."""
        return bool(self.closed) and not allowed.may_write_anywhere


def has_seatbelt() -> bool:
    return sys.platform == "darwin" and os.access(SEATBELT, os.X_OK)


def unmet_limit(wrapper: Wrapper, allowed: Allowed) -> str:
    """The limit that this machine cannot enforce; empty if there is none."""
    if not allowed.has_network and wrapper == Wrapper():
        wanted = "a list of hosts as network" if allowed.by_proxy else "network = false"
        return f"[sandbox] {wanted} needs a sandbox, and none is in use here"
    if (allowed.memory_mb or allowed.max_processes) and not wrapper.bwrap:
        return "[sandbox] memory_mb and max_processes need bubblewrap, which is not in use here"
    if allowed.max_processes and os.getuid() == 0:
        return "[sandbox] max_processes has no effect on processes of root"
    return ""


def start_command(
    argv: Sequence[str],
    allowed: Allowed,
    mounts: Sequence[Mount],
    *,
    wrapper: Wrapper,
    cwd: Path,
    pipe_fd: int,
    copy_fds: Sequence[int] = (),
) -> tuple[str, ...]:
    """The command below bubblewrap or our own reaper.

    `pipe_fd` is the pipe for bubblewrap's messages, or the lifeline of the reaper.
    """
    if wrapper.bwrap:
        return bubblewrap(
            argv,
            allowed,
            mounts,
            bwrap=wrapper.bwrap,
            cwd=cwd,
            info_fd=pipe_fd,
            copy_fds=copy_fds,
        )
    if wrapper.has_seatbelt and allowed != EVERYTHING:
        argv = seatbelt(argv, allowed, mounts)
    return below_reaper(argv, lifeline_fd=pipe_fd)


def below_reaper(argv: Sequence[str], *, lifeline_fd: int) -> tuple[str, ...]:
    """Run under our own reaper, if there is no bubblewrap."""
    return (sys.executable, "-I", "-S", reaper.__file__, str(lifeline_fd), *argv)


@contextlib.contextmanager
def copies_opened(allowed: Allowed) -> Iterator[tuple[tuple[Mount, ...], tuple[int, ...]]]:
    """The mounts, with an open file for each copy; a file that cannot be read is not copied."""
    fds: list[int] = []
    mounts: list[Mount] = []
    try:
        for mount in current_mounts(allowed):
            if mount.access is Access.COPY:
                try:
                    fds.append(os.open(mount.source, os.O_RDONLY | os.O_CLOEXEC))
                except OSError:
                    mount = replace(mount, access=Access.READ)  # noqa: PLW2901
            mounts.append(mount)
        yield tuple(mounts), tuple(fds)
    finally:
        for fd in fds:
            os.close(fd)


def confined(
    argv: Sequence[str],
    allowed: Allowed,
    *,
    wrapper: Wrapper,
    cwd: Path,
    copy_fds: Sequence[int] = (),
) -> tuple[str, ...]:
    """A command that a person starts, in its sandbox; without one, the command itself."""
    mounts = current_mounts(allowed)
    if wrapper.bwrap:
        sealed = (sys.executable, "-I", "-S", seal.__file__) if wrapper.seals(allowed) else ()
        start = bubblewrap(argv, allowed, mounts, bwrap=wrapper.bwrap, cwd=cwd, copy_fds=copy_fds)
        return (*sealed, *start)
    return seatbelt(argv, allowed, mounts) if wrapper.has_seatbelt else tuple(argv)


def terminal_command(command: str, allowed: Allowed, *, wrapper: Wrapper, cwd: Path) -> str:
    """A line for the shell of a terminal, which gives a command its sandbox and its copies.

    The command is a job of its own, so that Ctrl-C reaches it and not bubblewrap, which would die.
    """
    job = (sys.executable, "-I", "-S", terminal_job.__file__)
    argv: tuple[str, ...] = (*job, "sh", "-c", command)
    copies = [mount.source for mount in current_mounts(allowed) if mount.access is Access.COPY]
    fds = range(3, 3 + len(copies))  # a shell has room for seven
    argv = confined(argv, allowed, wrapper=wrapper, cwd=cwd, copy_fds=fds)
    opened = (f"{fd}<{shlex.quote(str(path))}" for fd, path in zip(fds, copies, strict=True))
    return " ".join((shlex.join(argv), *opened))
