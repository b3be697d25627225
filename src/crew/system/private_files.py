"""Folders and files that only their owner can read: all of `.crew` except the task files.

Their modes do not depend on the umask. A file that became a link is never written through.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from crew.system.crash_points import effect
from crew.system.foreign_files import set_aside

FOLDER_MODE = 0o700
FILE_MODE = 0o600
OPEN_TO_OTHERS = 0o077


def make_private_folder(folder: Path) -> None:
    """Make a folder and its missing parents. Existing ones stay as they are.

    The repository of a `.crew` is not made: it was moved or deleted while crew ran.
    """
    if folder.is_dir():
        return
    if folder.name != ".crew":
        make_private_folder(folder.parent)
    try:
        folder.mkdir(mode=FOLDER_MODE)
    except FileExistsError:
        if not folder.is_dir():
            raise
        return
    folder.chmod(FOLDER_MODE)


def open_private(path: Path, flags: int) -> int:
    """Open a file to write, and make it if needed; a link or a pipe in its place is replaced.

    A device is used as it is and never touched, since a log may be /dev/null.
    """
    flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    if _leads_elsewhere(path):
        path.unlink(missing_ok=True)
    handle = os.open(path, flags, FILE_MODE)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        os.fchmod(handle, FILE_MODE)
    return handle


def append_private(path: Path, content: bytes) -> None:
    """Append to a file, whose folder is made if needed."""
    make_private_folder(path.parent)
    handle = open_private(path, os.O_WRONLY | os.O_APPEND)
    with os.fdopen(handle, "ab") as file:
        file.write(content)


def append_lines(path: Path, lines: bytes) -> None:
    """Append whole lines; they begin on a line of their own, also after one that was cut off."""
    make_private_folder(path.parent)
    handle = open_private(path, os.O_RDWR | os.O_APPEND)
    with os.fdopen(handle, "ab") as file:
        size = os.fstat(handle).st_size
        is_cut = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        file.write(b"\n" + lines if is_cut else lines)


def _leads_elsewhere(path: Path) -> bool:
    """Whether it is a link of either kind, or a pipe; what is written would go somewhere else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    is_hard_link = stat.S_ISREG(found.st_mode) and found.st_nlink > 1
    return is_hard_link or stat.S_ISLNK(found.st_mode) or stat.S_ISFIFO(found.st_mode)


def ensure_pipe(path: Path) -> None:
    """Make a named pipe; a file, a link or a folder in its place is set aside."""
    try:
        if stat.S_ISFIFO(path.lstat().st_mode):
            return
        set_aside(path)
    except FileNotFoundError:
        pass
    with suppress(FileExistsError):  # another process was faster
        os.mkfifo(path, FILE_MODE)


def open_pipe(path: Path) -> int:
    """Both ends of a named pipe, which is made if needed."""
    ensure_pipe(path)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)


def exposed(folder: Path, *, besides: frozenset[str]) -> Iterator[Path]:
    """This folder and everything in it that other users may open; not these of its entries."""
    if is_open_to_others(folder):
        yield folder
    with os.scandir(folder) as entries:
        below = [entry for entry in entries if entry.name not in besides]
    for entry in below:
        yield from _exposed_below(entry)


def _exposed_below(entry: "os.DirEntry[str]") -> Iterator[Path]:
    try:
        if entry.is_dir(follow_symlinks=False):
            yield from exposed(Path(entry.path), besides=frozenset())
        elif is_open_to_others(Path(entry.path)):
            yield Path(entry.path)
    except FileNotFoundError:  # another process has removed it
        return


def is_open_to_others(path: Path) -> bool:
    """Whether its mode lets other users in. Sockets and links do not count."""
    mode = path.lstat().st_mode
    is_kept = stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISFIFO(mode)
    return is_kept and bool(mode & OPEN_TO_OTHERS)


@effect("files.tighten")
def close_to_others(folder: Path, *, besides: frozenset[str]) -> None:
    """Take all permissions from the group and from others; the owner's stay.

    No file is opened for it: to close one of SQLite's would end the locks of this process on it.
    """
    for path in list(exposed(folder, besides=besides)):
        with suppress(FileNotFoundError):
            path.chmod(path.lstat().st_mode & FOLDER_MODE)


def is_on_read_only_disk(folder: Path) -> bool:
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False
