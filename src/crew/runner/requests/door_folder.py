"""The folder of the agent door: short, private, and swept when its crew is gone.

The path of a unix socket has at most 108 bytes, and a repository's path may be longer. A step sees
the whole folder, so that a terminal, which outlives its runner, finds the door of the next one.
"""

import contextlib
import functools
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import CrewError
from crew.system.atomic_files import put_in_place
from crew.system.crash_points import effect

if TYPE_CHECKING:
    import socket

    from crew.workplace import Workplace

SOCKET, PROXY = "door", "proxy"
REPORT_DOOR, REPORT_TOKEN = "CREW_REPORT_DOOR", "CREW_REPORT_TOKEN"
"""The variables of a gate. Its code may send no requests; crew itself uses them to report."""
_OWNER = "crew"
"""The file with the path of the crew that this folder belongs to."""


def door_socket(workplace: "Workplace") -> Path:
    """The path of the door's socket, the same for every runner of this crew."""
    return _socket_of(_base(), workplace.folder)


def proxy_socket(workplace: "Workplace", hosts: Sequence[str]) -> Path:
    """The path of the socket at which these hosts are served; another list has another folder.

    So a program reaches only a proxy that has the list of its own sandbox.
    """
    crew, of_list = door_socket(workplace).parent, _short_hash("\n".join(hosts).encode())
    return crew.with_name(f"{crew.name}-{of_list}") / PROXY


@functools.cache
def _socket_of(base: Path, folder: Path) -> Path:
    return base / _short_hash(os.fsencode(folder.resolve())) / SOCKET


def _short_hash(content: bytes) -> str:
    import hashlib  # noqa: PLC0415 - most commands need no door

    return hashlib.sha256(content).hexdigest()[:16]


def _base() -> Path:
    """A folder of this user only; what a login session has, or else one in /tmp."""
    session, of_session, temporary = _bases(os.getuid())
    return of_session if is_private(session) else temporary


@functools.cache
def _bases(user: int) -> tuple[Path, Path, Path]:
    session = Path(f"/run/user/{user}")
    return session, session / "crew", Path(f"/tmp/crew-{user}")  # noqa: S108 - checked to be ours


def is_private(folder: Path) -> bool:
    """Whether this is a real folder that belongs to this user and that no other user can enter."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return is_ours and not found.st_mode & 0o077


@effect("door.make_folder")
def make_door_folder(workplace: "Workplace", socket: Path | None = None) -> Path:
    """Make the folder of a socket, or find it; raises if another user made it first."""
    folder = (socket or door_socket(workplace)).parent
    for one in (folder.parent, folder):
        with contextlib.suppress(FileExistsError):
            one.mkdir(mode=0o700)
        if not is_private(one):
            raise CrewError(
                f"{one} is not a private folder of yours",
                hint=f"remove it, or make it yours: rm -r {one}",
            )
    (folder / _OWNER).write_bytes(os.fsencode(workplace.folder.resolve()))
    return folder


@effect("door.remove")
def remove_door(door: Path, *, keep_folder: bool) -> None:
    """Remove a socket; an open terminal keeps the folder, for the door of the next runner."""
    door.unlink(missing_ok=True)
    if not keep_folder:
        _remove(door.parent)


@effect("door.open")
def listen_at(path: Path) -> "socket.socket":
    """Listen first and take the name then: a caller finds a door that answers, or none."""
    import socket  # noqa: PLC0415 - most commands open no door

    fresh = path.with_name(f".{path.name}")
    fresh.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(fresh))
        listener.listen()
        put_in_place(fresh, path)
    except OSError:
        listener.close()
        raise
    return listener


def sweep_doors() -> None:
    """Remove the folders of crews whose repository is gone."""
    base = _base()
    if not is_private(base):
        return
    for folder in base.iterdir():
        with contextlib.suppress(OSError):
            owner = Path(os.fsdecode((folder / _OWNER).read_bytes()))
            if not owner.exists():
                _remove(folder)


def sweep_proxies(workplace: "Workplace", *, keep: Sequence[str] | None) -> None:
    """Remove the folders of lists that this crew had before."""
    crew = door_socket(workplace).parent
    kept = None if keep is None else proxy_socket(workplace, keep).parent
    for folder in crew.parent.glob(f"{crew.name}-*"):
        if folder != kept:
            _remove(folder)


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
