"""Turns the rules about paths into mounts: in order, with symlinks resolved, without missing paths.

A folder that becomes empty also hides the symlinks that lead through it. So a path below it keeps
its name, and its content comes from where its symlinks lead. Everywhere else a mount is made where
the symlinks lead, since a mount on a symlink would follow it.
"""

import os
import stat
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import IntEnum
from functools import lru_cache
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.system.sandbox.allowed import Allowed


class Access(IntEnum):
    """What a mount gives. Of two rules for one path, the higher one holds."""

    EMPTY = 0
    READ = 1
    COPY = 2
    WRITE = 3
    HELD = 4


@frozen
class Mount:
    """One place in the sandbox. `source` is on the disk, `at` in the sandbox."""

    access: Access
    source: Path
    at: Path
    is_folder: bool


@frozen
class Found:
    """A path on the disk: where its symlinks lead, and whether that is a folder."""

    real: Path
    is_folder: bool


Find = Callable[[Path], Found | None]
_Parts = tuple[str, ...]

_LOOKED_EVERY_S = 2.0
"""How soon a sandbox sees a program that is installed while crew runs."""


def find(path: Path) -> Found | None:
    """Look at a path on the disk; None if there is nothing, or nothing that can be mounted."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - most paths do not exist: this is quicker
        real = os.path.realpath(path)
    except OSError:
        return None
    return Found(real=Path(real), is_folder=stat.S_ISDIR(mode))


def current_mounts(allowed: Allowed) -> tuple[Mount, ...]:
    """The mounts on the disk as it is. They are computed again if a path leads elsewhere now."""
    period = int(time.monotonic() // _LOOKED_EVERY_S)
    places = (  # in the order of the rules
        *map(_place, allowed.empty),
        *_places_in(allowed.readable, period),
        *map(_place, allowed.copied),
        *(_place(path.parent) for path in allowed.all_sockets),
        *map(_place, allowed.writable),
        *map(_place, allowed.held),
        *(_place(path) for pair in allowed.stand_ins for path in pair),
    )
    return _mounts_at(allowed, places)


_Place = tuple[int | str, ...]


@lru_cache(maxsize=256)
def _places_in(readable: tuple[Path, ...], period: int) -> tuple[_Place, ...]:
    """Most paths are readable ones where programs may be installed, and few of them exist."""
    del period  # it only decides whether the last answer still holds
    return tuple([_place(path) for path in readable])


@lru_cache(maxsize=256)
def _mounts_at(allowed: Allowed, places: tuple[_Place, ...]) -> tuple[Mount, ...]:
    """Each task has a folder of its own, and all other paths in common: those are found once."""
    named = (
        *(path for path, _ in _rules(allowed)),
        *(one for two in allowed.stand_ins for one in two),
    )
    known = dict(zip(named, places, strict=True))
    return mounts_of(allowed, lambda path: _found_at(path, known[path]))


@lru_cache(maxsize=2048)
def _found_at(path: Path, place: _Place) -> Found | None:
    del place  # it only decides whether the last answer still holds
    return find(path)


def _place(path: Path) -> _Place:
    """Changes if a path leads elsewhere. A file that is written anew has another inode."""
    try:
        found = os.stat(path)  # noqa: PTH116 - dozens of times for every process
        if stat.S_ISDIR(found.st_mode):
            return found.st_dev, found.st_ino
        link = str(path.readlink()) if path.is_symlink() else ""
        around = path.parent.stat()
    except OSError:
        return ()
    return around.st_dev, around.st_ino, link


def mounts_of(allowed: Allowed, find: Find = find) -> tuple[Mount, ...]:
    """The mounts in the order in which they are made: a folder before what is inside it."""
    emptied = dict[_Parts, Path]()
    for path in allowed.empty:
        if found := find(path):
            emptied.setdefault(path.parts, found.real)
            emptied.setdefault(found.real.parts, found.real)
    found_by = [(path, access, found) for path, access in _rules(allowed) if (found := find(path))]
    brought = {path.parts for path, access, found in found_by if access and found.is_folder}
    mounts: dict[Path, Mount] = {}
    for path, access, found in found_by:
        mount = _mount(path, access, found, emptied, brought)
        known = mounts.get(mount.at)
        if known is None or mount.access > known.access:
            mounts[mount.at] = mount
    for path, other in allowed.stand_ins:
        place, stand_in = find(path) or _missing(path, emptied), find(other)
        if place and stand_in and not place.is_folder:
            mount = _mount(path, Access.HELD, place, emptied, brought)
            mounts[mount.at] = replace(mount, source=stand_in.real)
    return tuple(_needed(sorted(mounts.values(), key=lambda one: (len(one.at.parts), one.at))))


def _rules(allowed: Allowed) -> tuple[tuple[Path, Access], ...]:
    return (
        *((path, Access.EMPTY) for path in allowed.empty),
        *((path, Access.READ) for path in allowed.readable),
        *((path, Access.COPY) for path in allowed.copied),
        # A server that starts again makes a new socket in the same folder.
        *((path.parent, Access.READ) for path in allowed.all_sockets),
        *((path, Access.WRITE) for path in allowed.writable),
        *((path, Access.HELD) for path in allowed.held),
    )


def _mount(
    path: Path,
    access: Access,
    found: Found,
    emptied: Mapping[_Parts, Path],
    brought: Container[_Parts],
) -> Mount:
    """A path below an empty folder is mounted there by name, any other where it leads.

    If a mounted folder brings a symlink along, the mount is made where that leads: the symlink is
    in the sandbox already.
    """
    above = next((parts for parts in _folders_above(path) if parts in emptied), None)
    named = None
    if above is not None and access is not Access.EMPTY:
        named = emptied[above].joinpath(*path.parts[len(above) :])
    is_brought = any(one in brought for one in _folders_above(path) if len(one) > len(above or ()))
    at = found.real if named is None or is_brought else named
    if access is Access.COPY and at != named:
        access = Access.READ  # only a folder of the sandbox has room for a copy
    return Mount(access=access, source=found.real, at=at, is_folder=found.is_folder)


def _missing(path: Path, emptied: Container[_Parts]) -> Found | None:
    """A file that is not on the disk: an empty folder of the sandbox has room for it."""
    return Found(real=path, is_folder=False) if path.parent.parts in emptied else None


def _folders_above(path: Path) -> Iterator[_Parts]:
    """The folders that contain a path, the nearest first."""
    parts = path.parts
    return (parts[:length] for length in range(len(parts) - 1, 0, -1))


def _needed(mounts: Iterable[Mount]) -> Iterator[Mount]:
    """Leave out what the folder around it gives already, since each mount costs time."""
    kept: dict[_Parts, Mount] = {}
    for mount in mounts:
        nearest = next((kept[one] for one in _folders_above(mount.at) if one in kept), _DISK)
        if not _gives(nearest, mount):
            kept[mount.at.parts] = mount
            yield mount


def _gives(around: Mount, mount: Mount) -> bool:
    below = mount.at.parts[len(around.at.parts) :]
    if around.source.parts + below != mount.source.parts:
        return False
    if around is _DISK and below[:1] == ("dev",):  # the sandbox may have a /dev of its own
        return False
    is_readable = around.access in {Access.READ, Access.WRITE, Access.HELD}
    is_writable = around.access is Access.WRITE
    return (mount.access is Access.READ and is_readable) or (
        mount.access is Access.WRITE and is_writable
    )


_DISK = Mount(access=Access.READ, source=Path("/"), at=Path("/"), is_folder=True)
"""What is around everything; it is at least readable."""
