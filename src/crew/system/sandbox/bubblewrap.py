"""Writes the command line of bubblewrap, the sandbox on Linux, from a description."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from crew.system.sandbox.allowed import Allowed
from crew.system.sandbox.mounts import Access, Mount

OWN_PROCESSES = ("--unshare-pid", "--proc", "/proc", "--die-with-parent")
SEALED = ("--cap-drop", "ALL", "--unshare-ipc", "--unshare-uts")
SEEN_OWNER = (1000, 1000) if os.getuid() == 0 else None
"""The user and group that own root's files in the sandbox; None: the real ones, as for all others.

Root without capabilities could not use a sandbox of its own, as agent CLIs do.
"""
AS_ORDINARY_USER = (
    ("--unshare-user", "--uid", str(SEEN_OWNER[0]), "--gid", str(SEEN_OWNER[1]))
    if SEEN_OWNER
    else ()
)
PROBE = ("--dev-bind", "/", "/", *OWN_PROCESSES, *SEALED, *AS_ORDINARY_USER, "--new-session")
"""Whether this works decides whether bubblewrap is used at all."""

_FLAGS = {
    Access.READ: "--ro-bind-try",
    Access.HELD: "--ro-bind-try",
    Access.WRITE: "--bind-try",
}


def bubblewrap(
    argv: Sequence[str],
    allowed: Allowed,
    mounts: Sequence[Mount],
    *,
    bwrap: str,
    cwd: Path,
    info_fd: int | None = None,
    copy_fds: Sequence[int] = (),
) -> tuple[str, ...]:
    """Run under bubblewrap: the kernel ends the whole namespace with its first process.

    A separate session keeps a script's `kill 0` away from bubblewrap. `copy_fds` are open files,
    one for each mount that is a copy, in their order.
    """
    return (
        bwrap,
        *_disk(allowed),
        *_binds(mounts, copy_fds),
        *OWN_PROCESSES,
        *SEALED,
        *AS_ORDINARY_USER,
        *(() if allowed.has_network else ("--unshare-net",)),
        *(() if allowed.has_terminal else ("--new-session",)),
        *(() if info_fd is None else ("--info-fd", str(info_fd))),
        *("--chdir", str(cwd), "--"),
        *(allowed.by_proxy.forwarded(has_loopback=True) if allowed.by_proxy else ()),
        *_limits(allowed),
        *argv,
    )


def _disk(allowed: Allowed) -> tuple[str, ...]:
    root = ("--dev-bind", "/", "/") if allowed.may_write_anywhere else ("--ro-bind", "/", "/")
    return (*root, *(("--dev", "/dev") if allowed.has_own_devices else ()))


def _binds(mounts: Sequence[Mount], copy_fds: Sequence[int]) -> Iterator[str]:
    fds = iter(copy_fds)
    for mount in mounts:
        at = str(mount.at)
        if mount.access is Access.COPY:
            yield from ("--perms", "0600", "--file", str(next(fds)), at)
        elif mount.access is not Access.EMPTY:
            flag = "--dev-bind-try" if _is_device(mount) else _FLAGS[mount.access]
            yield from (flag, str(mount.source), at)
        elif mount.is_folder:
            yield from ("--perms", "1777" if mount.at.name in {"tmp", "shm"} else "0700")
            yield from ("--tmpfs", at)
        else:
            yield from ("--ro-bind-try", "/dev/null", at)


def _is_device(mount: Mount) -> bool:
    parts = mount.at.parts[1:3]
    return parts[:1] == ("dev",) and parts != ("dev", "shm")


def _limits(allowed: Allowed) -> Iterator[str]:
    """Limits of each process by `prlimit`. Its data, since node reserves far more than it uses."""
    if allowed.memory_mb or allowed.max_processes:
        yield "prlimit"
        if allowed.memory_mb:
            yield f"--data={allowed.memory_mb << 20}"
        if allowed.max_processes:
            yield f"--nproc={allowed.max_processes}"
        yield "--"
