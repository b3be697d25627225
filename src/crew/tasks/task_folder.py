"""All access to task files: scans a folder, locks it, and replaces whole files."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from crew.domain.kernel.errors import CrewError, UsageError
from crew.system.atomic_files import put_in_place, sync_to_disk, write_file, write_unfinished
from crew.system.crash_points import effect
from crew.system.file_locks import wait_for_lock
from crew.system.foreign_files import NotBelieved, read_foreign, set_aside
from crew.tasks.source_snapshot import Signature

TEMP_SUFFIX = ".crew-tmp"
MAX_FILE_BYTES = 4 * 1024 * 1024
"""A larger file is not a task. Reading it would slow down every list of tasks."""
MAX_BATCH_BYTES = 2**28
_FILE_NAME = re.compile(r"[^/\0.][^/\0]*")


class FolderScan(NamedTuple):
    """One scan of a folder of tasks: change time, inode and size of each file, by name.

    Unlike the mtime, the change time cannot be set back. A rename gives a new inode, which
    distinguishes two changes within one tick of the clock. The size distinguishes most changes in
    place on file systems with a coarse clock.
    """

    stamp: str
    """Equal for two scans, even of two processes, only if nothing changed in between."""
    files: Mapping[str, tuple[int, int, int]]


def scan_folder(folder: Path, endings: tuple[str, ...]) -> FolderScan:
    """Every file with one of these suffixes, whatever it is."""
    if folder.is_symlink() or folder.parent.is_symlink():
        raise CrewError(
            f"{folder} is reached through a link, and may be outside the repository",
            hint="put a folder of its own there: crew writes the files of its tasks into it",
        )
    try:
        # Relative to the open folder, the kernel need not resolve the whole path for each file.
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return FolderScan(stamp="", files={})
    try:
        itself = os.fstat(handle)
        files = dict(_files(handle, endings))
    finally:
        os.close(handle)
    # The hash of a text differs between processes, the hash of numbers does not. Names may be left
    # out, since a rename changes the folder.
    numbers = hash(frozenset(files.values()))
    return FolderScan(stamp=f"{itself.st_mtime_ns}:{itself.st_ctime_ns}:{numbers}", files=files)


def signatures(scan: FolderScan, endings: tuple[str, ...]) -> dict[str, Signature]:
    """The signature of each task's files.

    A task exists if its file with the first suffix does. The other suffixes are additional files.
    """
    seen = scan.files.items()
    files = {name: f"{changed}:{inode}:{size}" for name, (changed, inode, size) in seen}
    first, *others = endings
    found = {name.removesuffix(first): sign for name, sign in files.items() if name.endswith(first)}
    for ending in others:
        found = {task: f"{sign} {files.get(task + ending, '-')}" for task, sign in found.items()}
    return found


def task_names(folder: Path, endings: tuple[str, ...]) -> set[str]:
    """The names of all tasks that have at least one file."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return {name.removesuffix(end) for name in names for end in endings if name.endswith(end)}


def _files(handle: int, endings: tuple[str, ...]) -> Iterator[tuple[str, tuple[int, int, int]]]:
    with os.scandir(handle) as listing:
        for entry in listing:
            if entry.name.endswith(endings):
                try:
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                yield entry.name, (found.st_ctime_ns, found.st_ino, found.st_size)


def read_text(path: Path) -> str | None:
    """The file's text, or None if it does not exist. ValueError if it cannot be read.

    The lines of a file whose first line ends in CRLF end in a plain newline here.
    """
    text = _raw_text(path)
    return text.replace("\r\n", "\n") if text and _has_crlf(text) else text


def _has_crlf(text: str) -> bool:
    """Whether its lines end as on Windows, as `core.autocrlf` checks files out."""
    return text.partition("\n")[0].endswith("\r")


def _raw_text(path: Path) -> str | None:
    try:
        content = read_foreign(path, max_bytes=MAX_FILE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"{path.name} cannot be opened: {error.strerror}") from error
    except NotBelieved as error:
        raise ValueError(f"{path.name} {error}") from error
    if (nul := content.find(0)) >= 0:
        raise ValueError(f"{path.name} is not text (byte {nul} is NUL)")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not UTF-8 text (byte {error.start})") from error


@contextmanager
def locked(path: Path, *, exclusive: bool) -> Iterator[None]:
    """Hold the lock at `path`, a file or a folder, until the block ends.

    A process without write permission (a sandbox, another user's store) reads without the lock:
    each file is complete at any moment, the lock only keeps the files of one task consistent.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    try:
        handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if exclusive:
            raise CrewError(
                f"{path} cannot be locked: {error.strerror}",
                hint="check the permissions of that file and its folder",
                code="not_lockable",
            ) from error
        handle = None
    if handle is None:
        yield
        return
    try:
        wait_for_lock(handle, is_shared=not exclusive)
        yield
    finally:
        os.close(handle)


def write_text(path: Path, text: str, *, is_private: bool = False) -> None:
    """Replace the file atomically, with the line ends that it has. The caller holds the lock.

    The temporary name is fixed, so that a retry after a crash overwrites it.
    """
    with suppress(ValueError):  # what cannot be read has no line ends to keep
        if _has_crlf(_raw_text(path) or ""):
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    _refuse_large(path.name, content := text.encode())
    temporary = path.with_name(path.name + TEMP_SUFFIX)
    _write_temporary(temporary, content)
    if is_private:
        temporary.chmod(0o600)
    _put_in_place(temporary, path)


def _refuse_large(name: str, content: bytes) -> None:
    if len(content) > MAX_FILE_BYTES:
        raise UsageError(
            f"{name} would be larger than {MAX_FILE_BYTES // 1024 // 1024} MiB",
            hint="close this task and continue in a new one",
        )


def write_batch(batch: Path, folder: Path, files: Mapping[str, str]) -> None:
    """Write many files, all or none. Once `batch` is in place, `finish_batch` completes it.

    The caller holds the folder's lock for both.
    """
    for name, text in files.items():
        _refuse_large(name, text.encode())
    temporary = batch.with_name(batch.name + TEMP_SUFFIX)
    _write_temporary(temporary, json.dumps(dict(files)).encode())
    _put_in_place(temporary, batch)
    finish_batch(batch, folder)


def finish_batch(batch: Path, folder: Path) -> None:
    """Write the files of a batch, even after its writer was killed. Safe to repeat."""
    if not os.path.lexists(batch):
        return
    try:
        files = _batch_files(read_foreign(batch, max_bytes=MAX_BATCH_BYTES, is_own=True))
    except (
        ValueError,
        RecursionError,
    ):  # no batch of crew's: those are complete once they are in place
        set_aside(batch)
        return
    _write_files(folder, files)
    delete_file(batch)


def _batch_files(content: bytes) -> dict[str, str]:
    """The files by their names, none of which leads out of the folder."""
    files = json.loads(content)
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
        raise NotBelieved("is no batch of files")
    if not all(_FILE_NAME.fullmatch(name) for name in files):
        raise NotBelieved("names a file outside the folder")
    return files


@effect("tasks.write_files")
def _write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Sync the disk once, since a sync for each file would take most of the time."""
    for name, text in files.items():
        write_file(folder / name, text.encode(), unfinished=folder / f"{name}{TEMP_SUFFIX}")
    os.sync()


@effect("tasks.write_temporary")
def _write_temporary(temporary: Path, content: bytes) -> None:
    write_unfinished(temporary, content, is_durable=True)


@effect("tasks.put_in_place")
def _put_in_place(temporary: Path, path: Path) -> None:
    put_in_place(temporary, path)
    sync_to_disk(path.parent)


@effect("tasks.delete_file")
def delete_file(path: Path) -> None:
    path.unlink(missing_ok=True)
    sync_to_disk(path.parent)


@effect("tasks.make_folder")
def make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
