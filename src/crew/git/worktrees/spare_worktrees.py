"""Spare worktrees: files and an index prepared in advance, which a move turns into a worktree.

Git does not know spares, so an unused one is only a folder. It belongs to the process that made it;
after a kill it is deleted, not reused.
"""

import os
import shutil
import uuid
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git import lfs
from crew.git.git_command import git
from crew.git.promised_objects import bring_promised
from crew.git.repository import Repository
from crew.git.task_repository.crew_index import note_index
from crew.git.task_repository.lay_repository import lay_repository
from crew.git.task_repository.take_in import note_mirror
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.worktree_admin import Kind
from crew.system.crash_points import effect

_NAME = ".spare-"
_LONG_S = 1800.0
_LAST_PLAIN_VERSION = (3).to_bytes(4)


@frozen
class Spare:
    """A folder with the files of a commit and their index."""

    folder: Path
    commit: str

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def index(self) -> Path:
        return self.folder / "index"


def is_possible(repo: Repository) -> bool:
    """Whether spares are possible: not with special refs or settings, or a sparse checkout."""
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
    """Update the spare to another commit; None, and the spare is deleted, if that fails.

    Only changed files are written, so attributes must be equal: a new one may affect all files.
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
    """Whether the index may name attribute files. Version 4, with compressed names, always may."""
    content = index.read_bytes()
    return content[4:8] > _LAST_PLAIN_VERSION or b".gitattributes" in content


def _has_same_attributes(repo: Repository, one: str, other: str) -> bool:
    args = ("diff-tree", "-r", "--name-only", one, other, "--", ":(glob)**/.gitattributes")
    return not git(repo.common_dir, *args)


@effect("git.refresh_spare")
def _refresh(repo: Repository, spare: Spare) -> None:
    _write_files(repo, spare)


@effect("git.place_spare")
def place(repo: Repository, spare: Spare, path: Path, *, branch: str, kind: Kind = "own") -> Path:
    """Turn the spare into the worktree of a branch that is at its commit.

    The git dir with the index comes first. After a kill before the move, the files are restored
    from that index, as in any lost worktree.
    """
    head = f"ref: refs/heads/{branch}"
    git_dir = worktree_admin.lay(repo, path, head=head, index=spare.index, kind=kind)
    if kind == "own":
        lay_repository(repo, git_dir, commit=spare.commit, branch=branch)
        note_mirror(git_dir, spare.commit)
        note_index(git_dir)
    named = worktree_admin.named_by_worktree(git_dir)
    (spare.files / ".git").write_bytes(b"gitdir: " + os.fsencode(named) + b"\n")
    spare.files.rename(path)
    spare.folder.rmdir()
    return git_dir


@effect("git.drop_spare")
def drop_spare(spare: Spare) -> None:
    shutil.rmtree(spare.folder, ignore_errors=True)


def drop_spares(worktrees: Path) -> None:
    """Delete all spares, even half-made ones."""
    for folder in worktrees.glob(f"{_NAME}*"):
        drop_spare(Spare(folder=folder, commit=""))


def _write_files(repo: Repository, spare: Spare) -> None:
    env = worktree_admin.environment_for(repo.common_dir, spare.files)
    env["GIT_INDEX_FILE"] = str(spare.index)
    args = ("read-tree", "--reset", "-u", spare.commit)
    bring_promised(repo, spare.commit)
    git(spare.files, *args, env=env, timeout_s=_LONG_S)
    lfs.fill(spare.files, repo.common_dir, index=spare.index, commit=spare.commit)
