"""Spare worktrees: files and their index made ahead, which become a worktree by being moved.

Git knows nothing of a spare, so one that is left over is only a folder. Whoever made it holds it;
after a kill nobody uses it again, and it is deleted.
"""

import os
import shutil
import uuid
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.git_command import git
from crew.git.repository import Repository
from crew.git.worktrees import worktree_admin
from crew.system.crash_points import effect

_NAME = ".spare-"
_LONG_S = 1800.0
_LAST_PLAIN_VERSION = (3).to_bytes(4)


@frozen
class Spare:
    """A folder with the files of a commit and the index that goes with them."""

    folder: Path
    commit: str

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def index(self) -> Path:
        return self.folder / "index"


def is_possible(repo: Repository) -> bool:
    """Not where a worktree is more than its files, or less of them than a commit has."""
    return (
        worktree_admin.has_plain_refs(repo)
        and not (repo.common_dir / "info/sparse-checkout").exists()
    )


@effect("git.make_spare")
def make_spare(repo: Repository, worktrees: Path, *, commit: str) -> Spare:
    spare = Spare(folder=worktrees / f"{_NAME}{uuid.uuid4().hex[:8]}", commit=commit)
    spare.files.mkdir(parents=True)
    _write_files(repo, spare)
    return spare


def brought_to(repo: Repository, spare: Spare, *, commit: str) -> Spare | None:
    """The spare with the files of another commit; None, and it is gone, if that cannot be done.

    Only what differs is written, so attributes must be the same: a changed one is about all files.
    """
    had_attributes = _may_name_attributes(spare.index)
    fresh = Spare(folder=spare.folder, commit=commit)
    if not had_attributes or _has_same_attributes(repo, spare.commit, commit):
        _refresh(repo, fresh)
        if had_attributes or not _may_name_attributes(fresh.index):
            return fresh
    drop_spare(spare)
    return None


def _may_name_attributes(index: Path) -> bool:
    """Answered without git where names are spelled out, which they are not in version 4."""
    content = index.read_bytes()
    return content[4:8] > _LAST_PLAIN_VERSION or b".gitattributes" in content


def _has_same_attributes(repo: Repository, one: str, other: str) -> bool:
    args = ("diff-tree", "-r", "--name-only", one, other, "--", ":(glob)**/.gitattributes")
    return not git(repo.common_dir, *args)


@effect("git.refresh_spare")
def _refresh(repo: Repository, spare: Spare) -> None:
    _write_files(repo, spare)


@effect("git.place_spare")
def place(repo: Repository, spare: Spare, path: Path, *, branch: str) -> Path:
    """Make it the worktree of a branch that was made just now, at the very commit of the spare.

    The git dir comes first, with the index: killed before the files follow, they are written from
    that again, as those of any worktree that was lost.
    """
    git_dir = worktree_admin.lay(repo, path, branch=branch, index=spare.index)
    (spare.files / ".git").write_bytes(b"gitdir: " + os.fsencode(git_dir) + b"\n")
    spare.files.rename(path)
    spare.folder.rmdir()
    return git_dir


@effect("git.drop_spare")
def drop_spare(spare: Spare) -> None:
    shutil.rmtree(spare.folder, ignore_errors=True)


def drop_spares(worktrees: Path) -> None:
    """Delete all that are there, half-made ones too."""
    for folder in worktrees.glob(f"{_NAME}*"):
        drop_spare(Spare(folder=folder, commit=""))


def _write_files(repo: Repository, spare: Spare) -> None:
    env = worktree_admin.environment_for(repo.common_dir, spare.files)
    env["GIT_INDEX_FILE"] = str(spare.index)
    args = ("read-tree", "--reset", "-u", spare.commit)
    git(spare.files, *args, env=env, timeout_s=_LONG_S)
