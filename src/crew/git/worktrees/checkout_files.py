"""Writes the files of a worktree: a first, a lost or a detached checkout."""

from collections.abc import Mapping
from pathlib import Path

from crew.domain.kernel.errors import Conflict, NotFound
from crew.git import lfs
from crew.git.branches import standing_in_the_way
from crew.git.git_command import ask, failure, git
from crew.git.killed_git import clear_lock
from crew.git.repository import Repository, commit_of
from crew.git.task_repository.agent_index import copied_index, staged_files
from crew.git.task_repository.agent_refs import agent_git_of
from crew.git.task_repository.crew_index import note_index, settle_held_index
from crew.git.task_repository.lay_repository import copy_index
from crew.git.task_repository.take_in import NotTakenIn, seeing
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.submodules import fill_submodules
from crew.git.worktrees.worktree_status import private_index, unfinished_in
from crew.system.crash_points import effect
from crew.system.file_locks import held

CHECKOUT_TIMEOUT_S = 1800.0


def finish_checkout(repo: Repository, git_dir: Path, path: Path) -> None:
    """Write the files of a new or lost worktree, or only its lost index."""
    with held(git_dir / "crew.lock") as lock:
        is_ready = worktree_admin.is_ready(git_dir)
        is_lost = (git_dir / worktree_admin.REFILL).exists()
        has_index = (git_dir / "index").exists()
        if is_ready and has_index and not is_lost:
            return
        if not has_index:
            clear_lock(git_dir / "index.lock")
            _reset(git_dir, path, hard=is_lost or not is_ready, lock=lock)
        elif is_lost:
            clear_lock(git_dir / "index.lock")
            if worktree_admin.is_own(git_dir):
                settle_held_index(path, git_dir)
            _write_files(git_dir, path, lock=lock)
        lfs.fill(path, git_dir)
        if worktree_admin.is_own(git_dir):
            if not has_index:
                note_index(git_dir)
            has_own = (agent_git_of(git_dir) / "index").exists()
            if not has_own or (is_lost and not _has_staged(repo, git_dir, path)):
                copy_index(repo, git_dir)
        fill_submodules(repo, git_dir, path)
        worktree_admin.finish_making(git_dir)


@effect("git.reset_worktree")
def _reset(git_dir: Path, path: Path, *, hard: bool, lock: int) -> None:
    """Write the files with `read-tree`, which unlike `reset --hard` changes no ref."""
    args = ("read-tree", "--reset", "-u", "HEAD") if hard else ("reset", "-q", "--mixed")
    env = worktree_admin.environment_for(git_dir, path)
    answer = ask(path, *args, env=env, timeout_s=CHECKOUT_TIMEOUT_S, keep_open=lock)
    if answer.code != 0 and hard:
        raise failure(args, answer)


@effect("git.write_files")
def _write_files(git_dir: Path, path: Path, *, lock: int) -> None:
    """Restore the files of the index, including staged changes, to an emptied directory."""
    env = worktree_admin.environment_for(git_dir, path)
    git(
        path,
        "checkout-index",
        "--all",
        "--force",
        "--index",
        env=env,
        timeout_s=CHECKOUT_TIMEOUT_S,
        keep_open=lock,
    )


def _has_staged(repo: Repository, git_dir: Path, path: Path) -> bool:
    """Restore what an agent staged in its own repository; false if that cannot be read."""
    with copied_index(git_dir) as copy, private_index(git_dir, copy=False) as fresh:
        if copy is None:
            return False
        try:
            env = {**seeing(repo, git_dir), "GIT_WORK_TREE": str(path)}
        except NotTakenIn:
            return False
        entries = staged_files(path, copy, env)
        is_written = _write_staged(path, entries, {**env, "GIT_INDEX_FILE": str(fresh)})
        lfs.settle(path, git_dir, index=fresh, fills=True)
        return is_written


@effect("git.write_staged")
def _write_staged(path: Path, entries: bytes, env: Mapping[str, str]) -> bool:
    """Write these entries to a new index and from there to the files.

    Git refuses a path that leads out of the folder when it is added, not when it is read.
    """
    added = ask(path, "update-index", "-z", "--index-info", stdin=entries, env=env)
    if added.code != 0:
        return False
    args = ("checkout-index", "--all", "--force")
    return ask(path, *args, env=env, timeout_s=CHECKOUT_TIMEOUT_S).code == 0


@effect("git.switch_detached")
def switch_detached(repo: Repository, git_dir: Path, path: Path, commit: str, *, lock: int) -> None:
    """Like `checkout --force --detach`, but without syncing the disk: nothing here must last.

    If a gate was killed during a merge, git itself has to abort it.
    """
    env = worktree_admin.environment_for(git_dir, path)
    args: tuple[str, ...] = ("read-tree", "--reset", "-u", commit)
    is_linked = not worktree_admin.is_own(git_dir)
    if is_linked and (unfinished_in(git_dir) or not worktree_admin.has_plain_refs(repo)):
        args = ("checkout", "-q", "-f", "--detach", commit)
    answer = ask(path, *args, env=env, timeout_s=CHECKOUT_TIMEOUT_S, keep_open=lock)
    if answer.code != 0:
        raise no_commit(commit) if commit_of(repo, commit) is None else failure(args, answer)
    if args[0] == "read-tree":
        worktree_admin.detach(git_dir, commit)
    lfs.fill(path, git_dir)


def no_commit(commit: str) -> NotFound:
    return NotFound(f"there is no commit {commit}", hint="`git log --all` shows the commits")


@effect("git.worktree_add")
def add_linked(repo: Repository, path: Path, *, branch: str | None, base: str, lock: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    args: tuple[str, ...] = ("--detach", str(path), base)
    if branch is not None and commit_of(repo, f"refs/heads/{branch}") is not None:
        args = (str(path), branch)
    elif branch is not None:
        args = ("--no-track", "-b", branch, str(path), base)
    command = ("worktree", "add", "--no-checkout", *args)
    answer = ask(repo.common_dir, *command, keep_open=lock)
    if answer.code != 0:
        if "already checked out" in answer.err or "already used by worktree" in answer.err:
            raise Conflict(
                f"the branch {branch} is checked out in another worktree",
                hint="switch that worktree to another branch",
                code="branch_checked_out",
            )
        if "cannot lock ref" in answer.err and "exists; cannot create" in answer.err:
            raise standing_in_the_way(str(branch))
        raise failure(command, answer)
