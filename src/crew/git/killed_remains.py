"""Finds and removes what a killed crew and its killed gits left: locks, and half-made files.

Only for a caller that holds the writer's lock, after all processes of the killed crew have ended.
"""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from crew.domain.kernel.names import made_ref
from crew.git.killed_git import clear_abandoned, clear_ref_lock, packed_locks
from crew.git.repository import Repository, ref_tip, refs_like
from crew.git.task_repository.agent_refs import remove
from crew.git.task_repository.store_objects import UNCHECKED
from crew.git.worktrees import worktree_admin
from crew.system.crash_points import effect
from crew.system.deep_folders import delete_folder
from crew.system.file_locks import held

OLD_S = 3600.0
"""No git and no crew needs longer for a file that it will rename or delete."""

_PERSONS = ("index.lock", "HEAD.lock", "config.lock")


def crews_locks(repo: Repository) -> tuple[Path, ...]:
    """The locks on refs that only crew writes, and on the packed refs."""
    branches = (repo.common_dir / "refs" / "heads").glob("crew-*.lock")
    found = [lock for lock in branches if ref_tip(repo, made_ref(lock.stem))]
    found += (repo.common_dir / "refs" / "crew").rglob("*.lock")
    return (*found, *(lock for lock in packed_locks(repo.common_dir) if lock.exists()))


def persons_locks(repo: Repository, targets: Iterable[str]) -> tuple[Path, ...]:
    """The locks in the person's checkout and on the branches to land on. crew removes none."""
    names = (*_PERSONS, *(f"refs/heads/{target}.lock" for target in sorted(targets)))
    return tuple(lock for name in names if (lock := repo.common_dir / name).exists())


def places_of_git(repo: Repository) -> tuple[Path, ...]:
    """The folders in which a git works that can hold a lock of this repository."""
    return repo.root, repo.common_dir, *worktree_admin.worktree_folders(repo)


def clear_crews_locks(repo: Repository, *, patience_s: float) -> None:
    """Remove the locks of dead gits on crew's refs, and on a target that crew was moving."""
    clear_abandoned(crews_locks(repo), places=places_of_git(repo), patience_s=patience_s)
    start = "refs/crew/landed/"
    for ref, landed in refs_like(repo, start).items():
        target = f"refs/heads/{ref.removeprefix(start)}"
        lock = repo.common_dir / f"{target}.lock"
        if lock.exists() and lock.read_bytes().strip() == landed.encode():
            clear_ref_lock(repo.common_dir, target, to=landed)


def half_made(repo: Repository, worktrees: Path) -> tuple[Path, ...]:
    """Files and folders that were about to be renamed or deleted when crew or its git died."""
    at_once = [*_gone(repo.common_dir), *worktrees.glob(".*.crew-gone-*")]
    at_once += [empty for empty in worktree_admin.own_git_dirs(repo) if not any(empty.iterdir())]
    before = time.time() - OLD_S
    later = [*_copies(repo), *_objects(repo.common_dir / "objects")]
    return (*at_once, *(one for one in later if _changed_at(one) < before))


def sweep_half_made(repo: Repository, worktrees: Path) -> None:
    """Delete them. Under the lock of worktrees, so that none of them is still in use."""
    with held(repo.common_dir / "crew.lock"):
        _delete(half_made(repo, worktrees))


@effect("git.sweep")
def _delete(found: Iterable[Path]) -> None:
    for one in found:
        delete_folder(one) if one.is_dir() else remove(one)


def _gone(common_dir: Path) -> Iterator[Path]:
    yield from common_dir.glob("crew-new-*")
    yield from common_dir.glob("crew-gone-*")


def _copies(repo: Repository) -> Iterator[Path]:
    """Copies of an index, and packs of an agent's commits."""
    for git_dir in worktree_admin.git_dirs(repo):
        yield from git_dir.glob("crew-index-*")
        yield from git_dir.glob("crew-in-*")


def _objects(objects: Path) -> Iterator[Path]:
    yield from objects.glob("[0-9a-f][0-9a-f]/tmp_obj_*")
    yield from objects.glob(f"{UNCHECKED}*")
    yield from (objects / "pack").glob("tmp_*")


def _changed_at(file: Path) -> float:
    try:
        return file.lstat().st_mtime
    except OSError:
        return time.time()
