"""Deletes a folder that an agent's program filled, however deep it is and whatever it forbids."""

import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path


def delete_folder(folder: Path) -> None:
    """Delete it as far as possible. The quick way recurses, and stops at a forbidden folder."""
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.is_dir() and not folder.is_symlink():
        with suppress(OSError):
            folder.chmod(0o700)
            _empty(folder)
            folder.rmdir()


def _empty(folder: Path) -> None:
    """Move what is in an inner folder up before that is deleted, so that no path grows long."""
    is_less = True
    while is_less:
        with os.scandir(folder) as entries:
            found = list(entries)
        is_less = True in [_is_gone(entry, folder) for entry in found]


def _is_gone(entry: "os.DirEntry[str]", top: Path) -> bool:
    try:
        if not entry.is_dir(follow_symlinks=False):
            Path(entry).unlink()
            return True
        for inner in _opened(entry):
            if inner.is_dir(follow_symlinks=False):
                _opened(inner)
            Path(inner).rename(top / uuid.uuid4().hex)
        Path(entry).rmdir()
    except OSError:
        return False
    return True


def _opened(folder: "os.DirEntry[str]") -> "list[os.DirEntry[str]]":
    """What is in it. Its owner may look and delete there from now on."""
    Path(folder).chmod(0o700)
    with os.scandir(folder) as entries:
        return list(entries)
