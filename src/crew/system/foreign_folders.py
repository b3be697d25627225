"""Writes below a folder that others can change: nothing there leads the write elsewhere.

An agent's program may put a link in the place of a folder at any moment, also between a look and a
write. So each folder on the way is opened without following a link, and the next name is looked up
in the open folder.
"""

import contextlib
import errno
import os
from pathlib import Path

from crew.system.atomic_files import put_in_place

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_THE_WAY = {errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENOENT}


def write_below(top: Path, name: str, content: bytes, *, clears_way: bool = False) -> bool:
    """Replace the file of this name in one move, and make the folders that are missing.

    False if `top` is not a folder, or if a link or a file is in the place of a folder, or a folder
    in the place of the file. `clears_way`: the link or file is deleted, the folder gets another
    name.
    """
    *folders, file = name.split("/")
    with contextlib.ExitStack() as kept:
        try:
            folder = _keep(kept, os.open(top, _FOLDER))
            for one in folders:
                folder = _keep(kept, _entered(folder, one, clears_way=clears_way))
            _replace(folder, file, content, clears_way=clears_way)
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise
            return False
    return True


def _keep(kept: contextlib.ExitStack, handle: int) -> int:
    kept.callback(os.close, handle)
    return handle


def _entered(folder: int, name: str, *, clears_way: bool) -> int:
    """Open the folder of this name in an open one; a missing one is made."""
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        if not clears_way or error.errno not in _IN_THE_WAY:
            raise
        os.unlink(name, dir_fd=folder)
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _replace(folder: int, name: str, content: bytes, *, clears_way: bool) -> None:
    fresh = f".{name}.crew-{os.urandom(8).hex()}"
    try:
        with open(os.open(fresh, _NEW, 0o666, dir_fd=folder), "wb") as file:  # noqa: PTH123
            file.write(content)
        _move(folder, fresh, name, clears_way=clears_way)
    except OSError:  # such as a full disk, or a folder in the way
        with contextlib.suppress(OSError):
            os.unlink(fresh, dir_fd=folder)
        raise


def _move(folder: int, fresh: str, name: str, *, clears_way: bool) -> None:
    try:
        put_in_place(fresh, name, within=folder)
    except IsADirectoryError:
        if not clears_way:
            raise
        aside = f"{name}.set-aside-{os.urandom(4).hex()}"
        os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
        put_in_place(fresh, name, within=folder)
