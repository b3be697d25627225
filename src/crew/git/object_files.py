"""Reads and stores single objects of a repository without starting git.

Only objects that have a file of their own, as recent ones do. Large and packed ones are git's.
"""

import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.system.atomic_files import write_together
from crew.system.crash_points import effect
from crew.system.foreign_files import NotBelieved, read_with_stamp

LARGEST = 20_000_000
_UNFINISHED = "tmp_obj_"
"""How git names such files too: it deletes those that a killed process left."""


@frozen
class ObjectFile:
    """An object: its kind, its content, and the bytes of its file."""

    kind: bytes
    content: bytes
    raw: bytes


def read_object(objects: Path, object_id: str) -> ObjectFile | None:
    """The object, if its file is sound: the content has exactly this id."""
    import hashlib  # noqa: PLC0415 - slow to load

    try:
        raw, _ = read_with_stamp(_file_of(objects, object_id), max_bytes=LARGEST)
    except (OSError, NotBelieved):
        return None
    unpacked = zlib.decompressobj()
    try:
        text = unpacked.decompress(raw, LARGEST)
    except zlib.error:
        return None
    header, _, content = text.partition(b"\0")
    kind, _, size = header.partition(b" ")
    if not unpacked.eof or unpacked.unused_data or size != str(len(content)).encode():
        return None
    if hashlib.sha1(text, usedforsecurity=False).hexdigest() != object_id:
        return None
    return ObjectFile(kind=kind, content=content, raw=raw)


@effect("git.store_objects")
def store_objects(objects: Path, found: Mapping[str, ObjectFile]) -> None:
    """Store these objects in their order, without those that are there already."""
    files = {_file_of(objects, object_id): one.raw for object_id, one in found.items()}
    missing = {file: raw for file, raw in files.items() if not os.path.lexists(file)}
    for folder in {file.rpartition("/")[0] for file in missing}:
        with suppress(FileExistsError):
            os.mkdir(folder)  # noqa: PTH102 - for every step
    write_together(missing, mode=0o444, unfinished=_UNFINISHED)


def _file_of(objects: Path, object_id: str) -> str:
    return f"{objects}/{object_id[:2]}/{object_id[2:]}"
