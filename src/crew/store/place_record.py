"""The record of where a crew is: `crew/place` in the git directory, which no clone or pull brings.

Every process that crew starts carries the id of its crew, and a start ends those of a dead runner.
So two repositories must never have the same id: the path tells a copy from the crew it was made of.
"""

import json
import os
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.foreign_files import NotBelieved, read_foreign

NAME = "crew/place"
_LARGEST = 65_536


@frozen
class Place:
    """A crew's id, its git directory and its root as they were when it last settled.

    `worktrees` is the folder of its worktrees, if it is another one than the configuration or the
    name of the repository gives, which is then `instead_of`.
    """

    id: str
    path: str
    root: str
    worktrees: str = ""
    instead_of: str = ""


class Standing(StrEnum):
    """What the record says about the repository that holds it."""

    HOME = "home"
    UNRECORDED = "unrecorded"
    COPIED = "copied"
    MOVED = "moved"


def read_place(git_dir: Path) -> Place | None:
    """The record of a git directory; None if there is none, or none that can be read."""
    try:
        return _parsed(read_foreign(git_dir / NAME, max_bytes=_LARGEST))
    except (OSError, ValueError):
        return None


def _parsed(content: bytes) -> Place:
    try:
        found = json.loads(content)
        values = {name: found.get(name, "") for name in Place.__dataclass_fields__}
    except (AttributeError, RecursionError) as error:
        raise NotBelieved("is no record of a place") from error
    if not all(isinstance(one, str) and "\0" not in one for one in values.values()):
        raise NotBelieved("has a value that is no text")
    if not (values["id"] and values["path"]):
        raise NotBelieved("names no crew")
    return Place(**values)


@effect("store.keep_place")
def keep_place(git_dir: Path, place: Place) -> None:
    file = git_dir / NAME
    file.parent.mkdir(exist_ok=True)
    write_file(file, json.dumps(asdict(place)).encode(), mode=0o600, is_durable=True)


def standing(git_dir: Path, place: Place | None) -> Standing:
    """Whether a repository is where its record says; a few calls of the kernel, and no git.

    The same folder may have several names: a link or a mount makes no copy.
    """
    if place is None:
        return Standing.UNRECORDED
    if place.path == os.fspath(git_dir) or is_same(Path(place.path), git_dir):
        return Standing.HOME
    return Standing.COPIED if _is_held_at(Path(place.path), place.id) else Standing.MOVED


def _is_held_at(git_dir: Path, crew: str) -> bool:
    """Whether this crew lives there. What cannot be read may be it: a copy harms nobody."""
    try:
        return _parsed(read_foreign(git_dir / NAME, max_bytes=_LARGEST)).id == crew
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True


def is_same(one: Path, other: Path) -> bool:
    """Whether both are the same folder, under whatever names; not if one is missing."""
    try:
        return os.path.samefile(one, other)  # noqa: PTH121 - of two texts
    except OSError:
        return False
