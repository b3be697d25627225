"""Stores a pack of an agent's objects in the main repository, after git has checked all of them.

`unpack-objects --strict` writes the objects before it has checked the last of them. So it writes
into a folder of its own: objects that git refuses never reach the main repository, where a second
try would find them and skip their check.
"""

import os
import shutil
import uuid
from pathlib import Path

from crew.git.git_command import GitAnswer, ask
from crew.git.repository import Repository
from crew.system.atomic_files import put_in_place
from crew.system.crash_points import effect

MOST_LOOSE = 500
"""A larger pack is stored as it is, instead of one file for each object."""
LONG_S = 1800.0

UNCHECKED = "tmp_objdir-crew-"
"""The name of a folder with objects that git has not checked yet. `git gc` removes old ones too."""

_LOOSE = ("unpack-objects", "-q", "--strict")
_PACKED = ("index-pack", "--stdin", "--strict", "--fix-thin")


@effect("git.store_commits")
def store_pack(repo: Repository, pack: Path) -> GitAnswer:
    """Git's answer; the objects are in the main repository if its code is 0."""
    with pack.open("rb") as file:
        count = int.from_bytes(file.read(12)[8:])
    if count > MOST_LOOSE:  # git puts a pack in place after its check
        return _unpack(repo, pack, _PACKED, objects=None)
    main = repo.common_dir / "objects"
    unchecked = main / f"{UNCHECKED}{uuid.uuid4().hex}"
    unchecked.mkdir(mode=0o700)
    try:
        answer = _unpack(repo, pack, _LOOSE, objects=unchecked)
        if answer.code == 0:
            _put_in_place(unchecked, main)
    finally:
        shutil.rmtree(unchecked, ignore_errors=True)
    return answer


def _unpack(
    repo: Repository, pack: Path, how: tuple[str, ...], *, objects: Path | None
) -> GitAnswer:
    env = {} if objects is None else reading(repo, repo.common_dir, objects)
    batch = ("-c", "core.fsyncMethod=batch")
    return ask(repo.common_dir, *batch, *how, stdin=pack, env=env, timeout_s=LONG_S)


def _put_in_place(unchecked: Path, main: Path) -> None:
    """Move each folder of objects, or its files if the main repository has such a folder."""
    for folder in os.listdir(unchecked):  # noqa: PTH208 - names are enough
        try:
            (unchecked / folder).rename(main / folder)
        except OSError:
            for file in (unchecked / folder).iterdir():
                put_in_place(file, main / folder / file.name)


def reading(repo: Repository, git_dir: Path, objects: Path) -> dict[str, str]:
    """Let git read these objects first, and then those of the main repository."""
    return {
        "GIT_DIR": str(git_dir),
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted((repo.common_dir / "objects").resolve()),
    }


def quoted(path: Path) -> str:
    """A path in the form that git reads from a list of object folders."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
