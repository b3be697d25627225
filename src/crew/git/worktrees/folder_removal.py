"""Removes the folder of a worktree: first out of its place, then file by file."""

import shutil
import uuid
from pathlib import Path

from crew.git.repository import Repository
from crew.git.task_repository.agent_refs import remove
from crew.git.worktrees import worktree_admin
from crew.system.crash_points import effect
from crew.system.deep_folders import delete_folder
from crew.system.file_locks import held

REPLACED = "replaced-"
"""In crew's git dir of a folder: what an agent made in place of the folder or its repository."""


@effect("git.set_aside")
def set_aside_folder(path: Path) -> None:
    """Rename the directory, so that the worktree disappears at once."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f".{path.name}.crew-gone-{uuid.uuid4().hex}"))


@effect("git.delete_set_aside")
def delete_set_aside(path: Path) -> None:
    if path.parent.is_dir():
        for entry in list(path.parent.iterdir()):
            if entry.name.startswith(f".{path.name}.crew-gone-"):
                delete_folder(entry)


@effect("git.delete_empty")
def delete_empty(path: Path) -> None:
    if path.is_dir():
        (path / ".git").unlink(missing_ok=True)
        path.rmdir()


def set_aside_stranger(git_dir: Path, path: Path) -> None:
    """Move a link or a file out of the place of a worktree: git would write behind a link."""
    if path.is_symlink() or path.is_file():
        _set_aside_stranger(git_dir, path)


@effect("git.set_aside_stranger")
def _set_aside_stranger(git_dir: Path, path: Path) -> None:
    shutil.move(path, git_dir / f"{REPLACED}{uuid.uuid4().hex[:8]}")


@effect("git.set_aside_repository")
def set_aside_repository(git_dir: Path, path: Path) -> None:
    """Move a repository that an agent made in place of its own out of the way, and keep it."""
    replaced = path / ".git"
    if replaced.is_dir() and not replaced.is_symlink():
        shutil.move(replaced, git_dir / f"{REPLACED}{uuid.uuid4().hex[:8]}")
    else:
        replaced.unlink(missing_ok=True)


def abandon(repo: Repository, path: Path) -> None:
    """Give up a worktree of gates that cannot be cleaned; what can be deleted is deleted."""
    path = path.absolute()
    git_dir = worktree_admin.git_dir_for(repo, path)
    with held(repo.common_dir / "crew.lock"):
        set_aside_folder(path)
        remove(path)  # a file or a link in its place
        if git_dir is not None and git_dir.exists() and git_dir != repo.common_dir:
            worktree_admin.forget(git_dir)
    delete_set_aside(path)
