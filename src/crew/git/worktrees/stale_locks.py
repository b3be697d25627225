"""Removes the locks that a killed git left in crew's worktrees, and completes its index.

Only the caller can prove that their owner is dead, since no process has the file open while a hook
or an editor runs. Locks of a person's checkout or another worktree are never touched.
"""

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from crew.domain.kernel.errors import Conflict
from crew.git.git_command import ask, git
from crew.git.hardening import stamp_of
from crew.git.killed_git import clear_lock
from crew.git.repository import Repository
from crew.git.task_repository.agent_index import copied_index
from crew.git.task_repository.agent_refs import agent_git_of, locks_of_agent
from crew.git.task_repository.take_in import NotTakenIn, follow_agent, seeing
from crew.git.worktrees import worktree_admin
from crew.system.atomic_files import put_in_place
from crew.system.crash_points import effect

_OURS = "crew.lock"
"""A file that crew locks and never removes."""


def locks_in(repo: Repository, path: Path, *, branch: str = "") -> tuple[Path, ...]:
    """Every git lock of this worktree and its branch; none if crew did not create it.

    Only looks for files, without starting a process.
    """
    git_dir = worktree_admin.git_dir_for(repo, path)
    found: list[Path] = []
    if git_dir is not None and git_dir != repo.common_dir:
        found += _locks_of(git_dir)
    of_branch = f"{repo.common_dir}/refs/heads/{branch}.lock"
    if branch and os.path.lexists(of_branch):
        found.append(Path(of_branch))
    return tuple(found)


def _locks_of(git_dir: Path) -> Iterator[Path]:
    names = os.listdir(git_dir) if git_dir.is_dir() else []  # noqa: PTH208 - names are enough
    if worktree_admin.READY not in names:
        return
    yield from (git_dir / name for name in names if name.endswith(".lock") and name != _OURS)
    if "refs" in names:
        yield from (git_dir / "refs").rglob("*.lock")
    if worktree_admin.is_own(git_dir):
        yield from locks_of_agent(agent_git_of(git_dir))


def order_stamp(repo: Repository, path: Path, branch: str) -> object:
    """Changes when a person or an agent touches what crew repairs in a worktree; None: unknown.

    Twelve files, without reading one.
    """
    crew_git = worktree_admin.git_dir_for(repo, path)
    if crew_git is None or not worktree_admin.is_own(crew_git):
        return None
    agent_git, ref = agent_git_of(crew_git), f"refs/heads/{branch}"
    own = (f"{path}", f"{path}/.git", f"{crew_git}", f"{crew_git}/HEAD")
    theirs = (f"{agent_git}/{name}" for name in (".", "HEAD", "index", "refs", "refs/heads", ref))
    main = (f"{repo.common_dir}/{ref}", f"{repo.common_dir}/{ref}.lock")
    return stamp_of((*own, *theirs, *main))


def places_of(repo: Repository, path: Path, lock: Path) -> tuple[Path, ...]:
    """The folders in which a git may hold this lock: the main checkout can move a branch too."""
    is_shared = lock.is_relative_to(repo.common_dir / "refs")
    return (path, repo.root, repo.common_dir) if is_shared else (path,)


def clear_stale_locks(repo: Repository, path: Path, locks: Iterable[Path]) -> None:
    """Remove these locks, whose owners the caller has proven dead. Safe to repeat.

    If a commit was killed after it moved its branch, its index is completed: with the old index,
    the next commit would undo it. Files of the worktree and staged changes stay as they are.
    """
    git_dir = worktree_admin.git_dir_for(repo, path)
    for lock in locks:
        if git_dir is not None and lock == git_dir / "index.lock":
            env = worktree_admin.environment_for(git_dir, path)
            _settle_index(git_dir / "index", lock, path, env, into=git_dir)
        elif git_dir is not None and lock == agent_git_of(git_dir) / "index.lock":
            with suppress(NotTakenIn, Conflict):  # the task's next look at it reports that
                _settle_own_index(repo, git_dir, path)
        clear_lock(lock)


def _settle_own_index(repo: Repository, git_dir: Path, path: Path) -> None:
    """The same for the index of a task's own repository, of which git reads copies."""
    follow_agent(repo, git_dir)
    env = {**worktree_admin.environment_for(git_dir, path), **seeing(repo, git_dir)}
    with copied_index(git_dir) as index, copied_index(git_dir, "index.lock") as lock:
        if index is not None:
            of_lock = lock or index.with_name(f"{index.name}-none")
            _settle_index(index, of_lock, path, env, into=agent_git_of(git_dir))


def _settle_index(
    index: Path, lock: Path, path: Path, env: Mapping[str, str], *, into: Path
) -> None:
    """Complete the index in this git dir. The lock goes last, so that a repeat finds the same."""
    of_index = {**env, "GIT_INDEX_FILE": str(index)}
    of_lock = {**env, "GIT_INDEX_FILE": str(lock)}
    committed = _names(path, env, "diff-tree", "-r", "HEAD^", "HEAD") or frozenset()
    is_behind = committed and _agrees(path, of_index, "HEAD^", committed)
    if _is_tree_of_head(path, env, of_lock) or (
        is_behind and _agrees(path, of_lock, "HEAD", committed)
    ):
        _install(lock, into)
    elif is_behind:
        _install(_brought_along(index, path, env, committed), into)


def _is_tree_of_head(path: Path, env: Mapping[str, str], of_index: Mapping[str, str]) -> bool:
    tree = ask(path, "write-tree", env=of_index)
    head = ask(path, "rev-parse", "--verify", "--quiet", "HEAD^{tree}", env=env)
    return tree.code == 0 and head.code == 0 and tree.out == head.out


def _agrees(path: Path, env: Mapping[str, str], commit: str, paths: frozenset[bytes]) -> bool:
    """Whether an index has these paths as in the commit; false if it cannot be read."""
    other = _names(path, env, "diff-index", "--cached", commit)
    return other is not None and not other & paths


def _names(path: Path, env: Mapping[str, str], command: str, *args: str) -> frozenset[bytes] | None:
    answer = ask(path, command, "--name-only", "--no-renames", "-z", *args, env=env)
    return None if answer.code != 0 else frozenset(answer.out.split(b"\0")) - {b""}


@effect("git.reset_index")
def _brought_along(
    index: Path, path: Path, env: Mapping[str, str], committed: Iterable[bytes]
) -> Path:
    """A copy of the index with the paths of the last commit as in that commit."""
    copy = index.with_name(f"crew-index-{uuid.uuid4().hex}")
    shutil.copy2(index, copy)
    paths = b"\0".join(b":(top,literal)" + name for name in sorted(committed))
    args = ("reset", "-q", "--pathspec-from-file=-", "--pathspec-file-nul")
    git(path, *args, env={**env, "GIT_INDEX_FILE": str(copy)}, stdin=paths)
    return copy


@effect("git.finish_commit")
def _install(index: Path, git_dir: Path) -> None:
    put_in_place(index, git_dir / "index")
