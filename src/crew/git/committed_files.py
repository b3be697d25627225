"""Compares files with a commit without starting git: by content, whatever an index says of them."""

import os
import stat
from pathlib import Path

from crew.git.object_files import LARGEST
from crew.git.task_repository.plain_objects import NotPlain, PlainEntry, stored_tree
from crew.system.foreign_files import (
    NotBelieved,
    Stamp,
    is_settled,
    read_with_stamp,
    stamp_of,
)

_FOLDER = b"40000"
_LINK = b"120000"
_MOST_REMEMBERED = 4096

_remembered: dict[str, tuple[Stamp, str]] = {}
"""The ids of files that were hashed: most are looked at around each later step of their task."""


class CommittedFiles:
    """The files of a commit. Its methods raise `NotPlain` where only git can read an object."""

    def __init__(self, common_dir: Path, tree: str) -> None:
        self._objects = common_dir / "objects"
        self._tree = tree

    def has(self, path: str, file: "os.DirEntry[str]") -> bool:
        """Whether the commit has this file as it is now, with its content and its mode."""
        entry = self._entry_of(path)
        if entry is None:
            return False
        return (entry.mode, entry.object_id) == (_mode_of(file), _id_of(file))

    def _entry_of(self, path: str) -> PlainEntry | None:
        *folders, name = os.fsencode(path).split(b"/")
        tree = self._tree
        for folder in folders:
            found = stored_tree(self._objects, tree).get(folder)
            if found is None or found.mode != _FOLDER:
                return None
            tree = found.object_id
        return stored_tree(self._objects, tree).get(name)


def _mode_of(file: "os.DirEntry[str]") -> bytes:
    mode = file.stat(follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        return _LINK
    return b"100755" if mode & stat.S_IXUSR else b"100644"


def _id_of(file: "os.DirEntry[str]") -> str:
    """The id that git gives to the content, without filters."""
    if file.is_symlink():
        return _blob_id(os.fsencode(os.readlink(file.path)))  # noqa: PTH115 - for every step
    stamp, known = _remembered.get(file.path, ((), ""))
    if stamp and stamp == stamp_of(file.stat(follow_symlinks=False)):
        return known
    try:
        content, found = read_with_stamp(file.path, max_bytes=LARGEST)
    except NotBelieved as error:
        raise NotPlain from error
    object_id = _blob_id(content)
    if is_settled(found):
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        _remembered[file.path] = (stamp_of(found), object_id)
    return object_id


def _blob_id(content: bytes) -> str:
    import hashlib  # noqa: PLC0415 - slow to load, and most files need no hash

    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
