"""Recognises a full disk (or a spent quota) in an error of the system, of SQLite or of git."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from crew.domain.kernel.errors import CrewError

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
DISK_FULL = "disk_full"
"""The code of an error that names a full disk itself."""


LEAST_ROOM = 2**16
"""SQLite needs this much to open a database."""


def has_no_room(folder: Path) -> bool:
    """Whether the disk of this folder is full for this user."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < LEAST_ROOM


def refuse_full_disk(folder: Path) -> None:
    """Raise if the disk of this folder has no room, as any write there would."""
    if has_no_room(folder):
        raise CrewError(
            f"the disk of {folder} is full", hint="free some space there", code=DISK_FULL
        )


def is_disk_full(error: BaseException) -> bool:
    return any(map(_names_a_full_disk, _with_causes(error)))


def _names_a_full_disk(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in NO_ROOM
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorname", None) == "SQLITE_FULL"
    return getattr(error, "code", None) == DISK_FULL


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
