"""Reads a file that others can write: it is checked before a byte of it is believed.

An agent, a commit or another user may have put a link, a named pipe, a device, a folder or a huge
file in its place. None of these may hang crew, or lead it out of the folder.
"""

import os
import stat
import time
from pathlib import Path
from typing import BinaryIO

from crew.system.crash_points import effect

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}
_READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_SMALL = 4096
_MOST_REMEMBERED = 4096
_TICK_NS = 100_000_000  # the kernel's clock of files, with room
_LONGEST_TICK_NS = 3_000_000_000  # some file systems count in seconds, or in two

Stamp = tuple[int, ...]
_remembered: dict[str, tuple[Stamp, bytes]] = {}
"""The small files that crew reads around every step, most of which never change."""


class NotBelieved(ValueError):
    """The file is not one that crew reads. The message is the reason, without the path."""


def read_foreign(path: Path | str, *, max_bytes: int, is_own: bool = False) -> bytes:
    """The content of a regular file of at most this size; `NotBelieved` if it is not one.

    With `is_own`, only a file of this user (or root) counts. `OSError` as from any read. A small
    file is read again only if its numbers changed.
    """
    name = os.fspath(path)
    stamp, content = _remembered.get(name, ((), b""))
    if stamp and len(content) <= max_bytes:
        found = os.lstat(name)
        if stamp == stamp_of(found) and not (is_own and _is_strangers(found)):
            return content
    content, found = read_with_stamp(name, max_bytes=max_bytes, is_own=is_own)
    _remember(name, found, content)
    return content


def _remember(name: str, found: os.stat_result, content: bytes) -> None:
    """Keep a small content, unless the file is so young that a later change may not show."""
    if len(content) > _SMALL or not is_settled(found):
        return
    if len(_remembered) >= _MOST_REMEMBERED:
        _remembered.clear()
    _remembered[name] = (stamp_of(found), content)


def is_settled(found: os.stat_result) -> bool:
    """Whether any later change of the file alters its numbers: it is older than a tick."""
    return time.time_ns() - found.st_ctime_ns > tick_ns(found)


def tick_ns(found: os.stat_result) -> int:
    """How long two changes of a file may have the same time on its file system, with room."""
    is_fine = found.st_ctime_ns % 1_000_000_000
    return _TICK_NS if is_fine else _LONGEST_TICK_NS


def stamp_of(found: os.stat_result) -> Stamp:
    """Changes whenever the file does. The ctime cannot be set back."""
    return (
        found.st_dev,
        found.st_ino,
        found.st_mode,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _is_strangers(found: os.stat_result) -> bool:
    return found.st_uid not in (os.geteuid(), 0)


def read_with_stamp(
    path: Path | str, *, max_bytes: int, is_own: bool = False
) -> tuple[bytes, os.stat_result]:
    """The same with the numbers of the file. Crew reads dozens of small files for every step."""
    handle, found = _opened(path)
    try:
        if is_own and _is_strangers(found):
            raise NotBelieved("belongs to another user")
        if found.st_size > max_bytes:
            raise _too_large(max_bytes)
        return _read_all(handle, found.st_size, max_bytes), found
    finally:
        os.close(handle)


def _read_all(handle: int, expected: int, max_bytes: int) -> bytes:
    """Read to the end. Usually one call is enough, since it finds nothing more than expected."""
    content = os.read(handle, expected + 1)
    if len(content) <= expected:
        return content
    while more := os.read(handle, max_bytes + 1 - len(content)):
        content += more
    if len(content) > max_bytes:
        raise _too_large(max_bytes)
    return content


def open_foreign(path: Path) -> BinaryIO:
    """A regular file, opened to read; `NotBelieved` if it is not one. It never waits."""
    return os.fdopen(_opened(path)[0], "rb")


def _opened(path: Path | str) -> tuple[int, os.stat_result]:
    """Open it without waiting for a pipe. What it is can only be trusted once it is open."""
    try:
        handle = os.open(path, _READ_ONLY)
    except FileNotFoundError:
        raise
    except OSError as error:
        if refused := _kind_of_other(os.lstat(path)):
            raise NotBelieved(f"is {refused}") from error
        raise
    found = os.fstat(handle)
    if refused := _kind_of_other(found):
        os.close(handle)
        raise NotBelieved(f"is {refused}")
    return handle, found


@effect("files.set_aside")
def set_aside(path: Path) -> Path | None:
    """Give a file that is not believed another name next to it; None if it is gone."""
    aside = path.with_name(f"{path.name}.set-aside-{os.urandom(4).hex()}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return None
    return aside


def _kind_of_other(found: os.stat_result) -> str:
    """What it is, if it is not a regular file."""
    if stat.S_ISREG(found.st_mode):
        return ""
    return _KINDS.get(stat.S_IFMT(found.st_mode), "not a file")


def _too_large(max_bytes: int) -> NotBelieved:
    size = f"{max_bytes // 2**20} MiB" if max_bytes >= 2**20 else f"{max_bytes // 2**10} KiB"
    return NotBelieved(f"is larger than {size}")
