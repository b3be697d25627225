"""The folder of the agent door: short, private, and swept when its crew is gone.

The path of a unix socket has at most 108 bytes, and a repository's path may be longer. A step sees
the whole folder, so that a terminal, which outlives its runner, finds the door of the next one.
"""

import contextlib
import functools
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import CrewError
from crew.system.crash_points import effect

if TYPE_CHECKING:
    from crew.workplace import Workplace

SOCKET = "door"
REPORT_DOOR, REPORT_TOKEN = "CREW_REPORT_DOOR", "CREW_REPORT_TOKEN"
"""The variables of a gate, whose code has no request to send: crew itself reports with them."""
_OWNER = "crew"
"""The file with the path of the crew that this folder belongs to."""


def door_socket(workplace: "Workplace") -> Path:
    """The path of the door's socket, the same for every runner of this crew."""
    return _base() / _name_of(workplace.folder) / SOCKET


@functools.cache
def _name_of(folder: Path) -> str:
    import hashlib  # noqa: PLC0415 - most commands need no door

    return hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]


def _base() -> Path:
    """A folder of this user only; what a login session has, or else one in /tmp."""
    session = Path(f"/run/user/{os.getuid()}")
    return session / "crew" if is_private(session) else Path(f"/tmp/crew-{os.getuid()}")  # noqa: S108 - checked to be ours


def is_private(folder: Path) -> bool:
    """Whether this is a real folder that belongs to this user and that no other user can enter."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return is_ours and not found.st_mode & 0o077


@effect("door.make_folder")
def make_door_folder(workplace: "Workplace") -> Path:
    """Make the folder, or find it; raises if another user made it first."""
    folder = door_socket(workplace).parent
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
def remove_door(workplace: "Workplace", *, keep_folder: bool) -> None:
    """Remove the door; an open terminal keeps the folder, for the door of the next runner."""
    door = door_socket(workplace)
    door.unlink(missing_ok=True)
    if not keep_folder:
        _remove(door.parent)


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


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
