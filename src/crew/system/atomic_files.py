"""Puts files in place in one move: a reader, or a kill at any moment, finds the old or the new.

The unfinished file has a name of its own, so that two writers never share one. Where a lock keeps
other writers away, give a fixed name as `unfinished`: a repeat after a kill writes over it.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

_DEFAULT_MODE = 0o666
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def write_file(
    path: Path,
    content: bytes,
    *,
    mode: int | None = None,
    is_durable: bool = False,
    unfinished: Path | None = None,
) -> None:
    """Replace the file with this content; a durable one is on the disk before it is in place."""
    fresh = unfinished or path.parent / f".{path.name}.crew-{os.urandom(8).hex()}"
    try:
        write_unfinished(fresh, content, mode=mode, is_durable=is_durable)
        put_in_place(fresh, path)
    except OSError:  # such as a full disk: an unfinished file is of no use to anything
        fresh.unlink(missing_ok=True)
        raise


def rewrite_file(
    path: Path, content: bytes, *, mode: int | None = None, is_durable: bool = False
) -> None:
    """Replace a file that people keep: a link stays a link, and its target keeps its mode.

    `mode` is for a file that is not there yet.
    """
    path = path.resolve()
    kept = path.stat().st_mode & 0o7777 if path.exists() else mode
    write_file(path, content, mode=kept, is_durable=is_durable)


def has_content(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def write_unfinished(
    fresh: Path, content: bytes, *, mode: int | None = None, is_durable: bool = False
) -> None:
    """The first half of a write, for those who put it in place themselves."""
    first = _DEFAULT_MODE if mode is None else mode & 0o700
    _fill(_open_fresh(fresh, first), content, mode=mode, is_durable=is_durable)


def write_together(files: Mapping[str, bytes], *, mode: int, unfinished: str) -> None:
    """Write files in their order; all are on the disk before the first one has its name.

    `unfinished`: how the names of unfinished files begin.
    """
    mark = f"{unfinished}{os.urandom(8).hex()}"
    fresh = {path: f"{path.rpartition('/')[0]}/{mark}-{n}" for n, path in enumerate(files)}
    handles = list[int]()
    try:
        for path, content in files.items():
            handles.append(os.open(fresh[path], _NEW, mode))
            _write_all(handles[-1], content)
        _sync_together(handles)
        for path, one in fresh.items():
            put_in_place(one, path)
    except OSError:
        for one in fresh.values():
            Path(one).unlink(missing_ok=True)
        raise
    finally:
        for handle in handles:
            os.close(handle)


def _sync_together(handles: Sequence[int]) -> None:
    """Wait until the disk has all of these files.

    The disk begins with all of them before crew waits for one. Then most file systems record them
    in one transaction, which takes a third of the time.
    """
    for handle in handles if hasattr(os, "posix_fadvise") else ():
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    for handle in handles:
        os.fsync(handle)


def claim_file(path: str, content: bytes) -> bool:
    """Create a durable file, such as a lock; False if there is one of this name."""
    try:
        handle = os.open(path, _NEW, _DEFAULT_MODE)
    except FileExistsError:
        return False
    try:
        _fill(handle, content, mode=None, is_durable=True)
    except OSError:
        Path(path).unlink(missing_ok=True)
        raise
    return True


def _fill(handle: int, content: bytes, *, mode: int | None, is_durable: bool) -> None:
    try:
        _write_all(handle, content)
        if mode is not None:
            os.fchmod(handle, mode)
        if is_durable:
            os.fsync(handle)
    finally:
        os.close(handle)


def _write_all(handle: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


def _open_fresh(fresh: Path, mode: int) -> int:
    """Make the file. A link that has its fixed name would lead to a file of others."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(fresh, flags | os.O_EXCL, mode)
    except FileExistsError:
        mode_now = _mode_of(fresh)
        if stat.S_ISLNK(mode_now) or stat.S_ISFIFO(mode_now):
            fresh.unlink(missing_ok=True)
        return os.open(fresh, flags | os.O_TRUNC, mode)


def _mode_of(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return stat.S_IFREG


def put_in_place(fresh: Path | str, path: Path | str, *, within: int | None = None) -> None:
    """The second half: one move, even for a file that another program has written.

    `within`: the open folder in which both names are looked up.
    """
    os.replace(fresh, path, src_dir_fd=within, dst_dir_fd=within)


def sync_to_disk(path: Path) -> None:
    """Wait until the disk has this file, or the names that were changed in this folder."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
