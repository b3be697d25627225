"""Makes the repository of a gate's folder as good as new, before each run of a gate.

Nothing that the last gate made there may reach the next gate. Usually it made nothing; crew then
overwrites the few files that differ. Making all of them again would cost the disk more than
everything else that crew does for a gate.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from crew.git.gate_folders.made_folders import Made, made_like
from crew.git.repository import Repository
from crew.git.task_repository.agent_refs import agent_git_of, is_folder, remove
from crew.git.task_repository.lay_repository import (
    FOLDERS,
    files_of,
    index_for_agent,
    lay_repository,
)
from crew.system.crash_points import effect


def renew_repository(repo: Repository, crew_git: Path, *, commit: str) -> None:
    """Leave in the folder's repository what a new one would hold, and nothing else."""
    agent_git = agent_git_of(crew_git)
    files = files_of(repo, crew_git, commit, None, {})
    if (index := index_for_agent(repo, crew_git)) is not None:
        files["index"] = index
    if not _is_written_over(agent_git, files, made_like(crew_git, crew_git)):
        remove(agent_git)
        lay_repository(repo, crew_git, commit=commit, branch=None)


@effect("git.renew_repository")
def _is_written_over(agent_git: Path, files: Mapping[str, bytes], made: Made) -> bool:
    """False if anything but these files and the folders of a new repository is there."""
    try:
        if not is_folder(agent_git) or set(_names_below(agent_git, made)) != _expected(files):
            return False
        return all(_is_rewritten(f"{agent_git}/{name}", files[name], made) for name in files)
    except OSError:
        return False


def _expected(files: Iterable[str]) -> set[str]:
    folders = (part for name in FOLDERS for part in (name.partition("/")[0], name))
    return {*files, *(f"{name}/" for name in folders)}


def _names_below(top: Path, made: Made) -> Iterator[str]:
    """The names of all files and folders there, which are restored; a real folder ends in /."""
    folders = [""]
    while folders:
        folder = folders.pop()
        made.restore(f"{top}/{folder}")
        with os.scandir(f"{top}/{folder}") as entries:
            for entry in entries:
                name = folder + entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(name := f"{name}/")
                yield name


def _is_rewritten(file: str, content: bytes, made: Made) -> bool:
    """Write the content, unless the file has it; False for a link or a file with a second name."""
    handle = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            return False
        made.restore(handle, is_file=True)
        if found.st_size != len(content) or os.read(handle, len(content) + 1) != content:
            os.ftruncate(handle, 0)
            os.pwrite(handle, content, 0)
        return True
    finally:
        os.close(handle)
