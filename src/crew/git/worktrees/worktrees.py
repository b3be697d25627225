"""Creates, reuses, reads and removes worktrees, and repairs every half-made state."""

import os
import shutil
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from crew.domain.kernel.errors import Conflict, CrewError, NotFound
from crew.git.branches import standing_in_the_way
from crew.git.git_command import ask, failure, git
from crew.git.refs import advance, delete_refs
from crew.git.repository import (
    Repository,
    check_own_repositories,
    commit_of,
    is_object_id,
    ref_tip,
)
from crew.git.task_repository.agent_refs import agent_git_of, has_sound_index, is_folder, read_head
from crew.git.task_repository.lay_repository import (
    copy_index,
    lay_repository,
    remove,
    renew_repository,
)
from crew.git.task_repository.take_in import follow_agent, note_mirror
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.clean_check import holds_only_tracked
from crew.git.worktrees.spare_worktrees import Spare, place
from crew.git.worktrees.worktree_admin import Kind
from crew.git.worktrees.worktree_status import WorktreeState, load_status, unfinished_in
from crew.system.crash_points import effect
from crew.system.file_locks import held

CHECKOUT_TIMEOUT_S = 1800.0


def ensure_worktree(
    repo: Repository,
    path: Path,
    *,
    branch: str,
    base: str,
    is_new: bool = False,
    spare: Spare | None = None,
    kind: Kind = "own",
) -> str:
    """Create the worktree of a branch, from `base` if the branch is new; returns its HEAD.

    A complete worktree stays exactly as it is, dirty or not. `is_new`: the branch was just created,
    so that no worktree has it checked out and a spare at `base` can be used.
    """
    path = path.absolute()
    with held(repo.common_dir / "crew.lock") as lock:
        git_dir = _repair_git_dir(repo, path, branch=branch)
        if git_dir is None:
            refuse_foreign(repo, path)
            worktree_admin.sweep(repo, path.name)
            if kind == "own":
                git_dir = _laid_own(repo, path, branch=branch, base=base, spare=spare)
            elif is_new and worktree_admin.is_simple(repo, path):
                git_dir = _laid_linked(repo, path, branch=branch, spare=spare)
            else:
                _add(repo, path, branch=branch, base=base, lock=lock)
                git_dir = _git_dir(repo, path)
    _refuse_stranger(git_dir, path, branch=branch)
    _finish_checkout(git_dir, path)
    if worktree_admin.is_own(git_dir):
        follow_agent(repo, path, crew_git=git_dir)
    return _head(repo, git_dir, path)


def _laid_own(repo: Repository, path: Path, *, branch: str, base: str, spare: Spare | None) -> Path:
    check_own_repositories(repo)
    ref = f"refs/heads/{branch}"
    tip = ref_tip(repo, ref)
    if tip is None:
        advance(repo, ref, to=(tip := base), expected=None)
    if spare is not None and spare.commit == tip:
        return place(repo, spare, path, branch=branch)
    git_dir = worktree_admin.lay(repo, path, head=f"ref: {ref}")
    _lay_repository(repo, git_dir)
    worktree_admin.point(git_dir, path)
    return git_dir


def _laid_linked(repo: Repository, path: Path, *, branch: str, spare: Spare | None) -> Path:
    if spare is not None:
        return place(repo, spare, path, branch=branch, kind="linked")
    git_dir = worktree_admin.lay(repo, path, head=f"ref: refs/heads/{branch}", kind="linked")
    worktree_admin.point(git_dir, path)
    return git_dir


def _lay_repository(repo: Repository, git_dir: Path) -> None:
    """Write the worktree's own repository, at the commit of its branch."""
    ref = _symbolic_head(git_dir) or ""
    commit = ref_tip(repo, ref)
    if commit is None:
        raise _no_commit(ref)
    lay_repository(repo, git_dir, commit=commit, branch=ref.removeprefix("refs/heads/"))
    note_mirror(git_dir, commit)


def ensure_detached(
    repo: Repository,
    path: Path,
    commit: str,
    *,
    kind: Kind = "own",
    keep: tuple[str, ...] = (),
) -> None:
    """A worktree for gates at exactly this commit.

    From its last use only the ignored files stay that match a pattern in `keep`.
    """
    path = path.absolute()
    found = commit if is_object_id(commit) else commit_of(repo, commit)
    if found is None:
        raise _no_commit(commit)
    git_dir = _detached_git_dir(repo, path, found, kind=kind)
    _refuse_stranger(git_dir, path, branch=None)
    worktree_admin.finish_making(git_dir)  # crew's own from now on, whatever state a kill leaves
    with held(git_dir / "crew.lock") as lock:
        for left in git_dir.glob("*.lock"):
            if left.name != "crew.lock":
                worktree_admin.clear_lock(left)
        _switch(repo, git_dir, path, found, lock=lock)
        if not holds_only_tracked(path, git_dir):
            _clean(git_dir, path, keep=keep, lock=lock)
        if worktree_admin.is_own(git_dir):
            renew_repository(repo, git_dir, commit=found)
            if not worktree_admin.is_pointed_at(git_dir, path):
                remove(path / ".git")
                worktree_admin.point(git_dir, path)


def _detached_git_dir(repo: Repository, path: Path, commit: str, *, kind: Kind) -> Path:
    with held(repo.common_dir / "crew.lock") as lock:
        git_dir = _repair_git_dir(repo, path, branch=None)
        if git_dir is None:
            refuse_foreign(repo, path)
            worktree_admin.sweep(repo, path.name)
            if kind == "own":
                git_dir = worktree_admin.lay(repo, path, head=commit)
                path.mkdir(parents=True, exist_ok=True)
            else:
                _add(repo, path, branch=None, base=commit, lock=lock)
                git_dir = _git_dir(repo, path)
    return git_dir


def remove_worktree(repo: Repository, path: Path) -> None:
    """Remove a linked worktree. The caller has saved its content elsewhere."""
    path = path.absolute()
    git_dir = worktree_admin.git_dir_for(repo, path)
    if git_dir == repo.common_dir:
        raise Conflict(f"{path} is the main checkout", hint="crew only removes its own worktrees")
    if git_dir is None and path.exists() and not worktree_admin.is_orphan(repo, path):
        raise _not_ours(path)
    reason = worktree_admin.lock_reason(git_dir) if git_dir is not None else None
    if reason is not None:
        raise Conflict(
            f"{path} is locked: {reason}",
            hint=f"unlock it with: git worktree unlock {path}",
            code="worktree_locked",
        )
    if git_dir is not None and worktree_admin.is_own(git_dir) and git_dir.exists():
        with suppress(CrewError):  # a checkpoint has what can be saved
            follow_agent(repo, path, crew_git=git_dir)
    with held(repo.common_dir / "crew.lock"):
        _set_aside(path)
        if git_dir is not None and git_dir.exists():
            worktree_admin.forget(git_dir)
    _delete_set_aside(path)


def delete_branch(
    repo: Repository, branch: str, *, expected: str, marks: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Delete a branch that is at `expected` and that no worktree has checked out.

    `marks` are refs to delete with it, and their commits.
    """
    holders = worktree_paths(repo) if _may_be_held(repo, branch) else {}
    holder = next((path for path, held_one in holders.items() if held_one == branch), None)
    if holder is not None:
        raise Conflict(
            f"the branch {branch} is checked out in {holder}",
            hint="switch that worktree to another branch first",
            code="branch_checked_out",
        )
    delete_refs(repo, {f"refs/heads/{branch}": expected, **marks})


def _may_be_held(repo: Repository, branch: str) -> bool:
    """Whether a HEAD names the branch, or cannot be read, so that git has to decide."""
    if (repo.common_dir / "reftable").exists():
        return True
    try:
        heads = [_symbolic_head(git_dir) for git_dir in worktree_admin.git_dirs(repo)]
    except OSError:
        return True
    return f"refs/heads/{branch}" in heads


def worktree_paths(repo: Repository) -> dict[Path, str]:
    """Every worktree with its branch, the main one first. A detached one has an empty name."""
    listing = ask(repo.common_dir, "worktree", "list", "--porcelain", "-z")
    found: dict[Path, str] = {}
    path = repo.root
    for line in os.fsdecode(listing.out).split("\0"):
        word, _, rest = line.partition(" ")
        if word == "worktree":
            path = Path(rest) if found else repo.root
            found[path] = ""
        elif word == "branch":
            found[path] = rest.removeprefix("refs/heads/")
    for path, git_dir in worktree_admin.own_folders(repo):
        found[path] = (_symbolic_head(git_dir) or "").removeprefix("refs/heads/")
    return found


def state_of(repo: Repository, path: Path) -> WorktreeState:
    """The uncommitted changes, and the unfinished git operation, if any.

    Commits that an agent made in its own repository are taken in first.
    """
    path = path.absolute()
    git_dir = _git_dir(repo, path)
    head = follow_agent(repo, path, crew_git=git_dir) if worktree_admin.is_own(git_dir) else None
    state = load_status(path, git_dir, env=worktree_admin.environment_for(git_dir, path))
    return replace(state, branch=head.branch) if head is not None else state


def follow(repo: Repository, path: Path) -> None:
    """Take in what was committed in a worktree's own repository."""
    git_dir = _git_dir(repo, path)
    if worktree_admin.is_own(git_dir):
        follow_agent(repo, path, crew_git=git_dir)


def bound_to(repo: Repository, path: Path) -> dict[str, str]:
    """The variables that bind git to a worktree, whatever its own `.git` contains."""
    return worktree_admin.environment_for(_git_dir(repo, path.absolute()), path)


def heal(repo: Repository, path: Path) -> None:
    """Repair a worktree's own repository, if an agent damaged its HEAD or index.

    Only while no process of the task runs. Its files stay as they are.
    """
    path = path.absolute()
    git_dir = worktree_admin.git_dir_for(repo, path)
    if git_dir is None or not worktree_admin.is_own(git_dir) or not is_folder(path):
        return
    if not (git_dir / worktree_admin.READY).exists():
        return
    _repair_pointer(repo, git_dir, path, branch=_symbolic_head(git_dir))
    if not has_sound_index(agent_git_of(git_dir)):
        follow_agent(repo, path, crew_git=git_dir)
        copy_index(git_dir)


def refuse_foreign(repo: Repository, path: Path) -> None:
    """Refuse a path whose content crew did not create."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise _not_ours(path)
    if path.is_dir() and any(path.iterdir()) and not worktree_admin.is_orphan(repo, path):
        raise _not_ours(path)


def _repair_git_dir(repo: Repository, path: Path, *, branch: str | None) -> Path | None:
    """The worktree's git dir, repaired; None if it must be created. Only under the lock."""
    git_dir = worktree_admin.git_dir_for(repo, path)
    if git_dir is None:
        return _adopt_files(repo, path, branch=branch)
    _set_aside_stranger(git_dir, path)
    if not worktree_admin.is_whole(git_dir):
        if not worktree_admin.is_bare_of_files(path):
            return _adopt_files(repo, path, branch=branch)
        worktree_admin.forget(git_dir)
        _delete_empty(path)
        return None
    if not worktree_admin.is_pointed_at(git_dir, path):
        if (path / ".git").is_dir() and not worktree_admin.is_own(git_dir):
            raise _not_ours(path)
        if worktree_admin.is_bare_of_files(path):
            worktree_admin.mark_refill(git_dir)
    _repair_pointer(repo, git_dir, path, branch=branch)
    return git_dir


def _repair_pointer(repo: Repository, git_dir: Path, path: Path, *, branch: str | None) -> None:
    """Repair a task's own repository, and make the `.git` of its worktree name it."""
    is_own = worktree_admin.is_own(git_dir)
    if is_own and branch and read_head(agent_git_of(git_dir)) is None:
        _lay_repository(repo, git_dir)
    if not worktree_admin.is_pointed_at(git_dir, path):
        if is_own:
            _set_aside_repository(git_dir, path)
        worktree_admin.point(git_dir, path)


@effect("git.set_aside_stranger")
def _set_aside_stranger(git_dir: Path, path: Path) -> None:
    """Move a link or a file out of the place of a worktree: git would write behind a link."""
    if path.is_symlink() or path.is_file():
        shutil.move(path, git_dir / f"replaced-{uuid.uuid4().hex[:8]}")


@effect("git.set_aside_repository")
def _set_aside_repository(git_dir: Path, path: Path) -> None:
    """Move a repository that an agent made in place of its own out of the way, and keep it."""
    replaced = path / ".git"
    if replaced.is_dir() and not replaced.is_symlink():
        shutil.move(replaced, git_dir / f"replaced-{uuid.uuid4().hex[:8]}")
    else:
        replaced.unlink(missing_ok=True)


def _adopt_files(repo: Repository, path: Path, *, branch: str | None) -> Path | None:
    """Create a new git dir for files whose own is lost or incomplete. The files stay."""
    if not worktree_admin.is_orphan(repo, path):
        return None
    has_work = branch is not None and not worktree_admin.is_bare_of_files(path)
    if has_work and commit_of(repo, f"refs/heads/{branch}") is None:
        raise _not_ours(path)
    remains = worktree_admin.git_dir_for(repo, path)
    if remains is not None:
        worktree_admin.forget(remains)
    if branch is None or not has_work:
        _set_aside(path)
        _delete_set_aside(path)
        return None
    git_dir = worktree_admin.register(repo, path, branch=branch)
    if worktree_admin.is_own(git_dir):
        _lay_repository(repo, git_dir)
    return git_dir


def _refuse_stranger(git_dir: Path, path: Path, *, branch: str | None) -> None:
    """Refuse a worktree that crew did not create, unless it is on the wanted branch."""
    if (git_dir / worktree_admin.READY).exists() or worktree_admin.is_bare_of_files(path):
        return
    if branch is None or _symbolic_head(git_dir) != f"refs/heads/{branch}":
        raise _not_ours(path)


def _finish_checkout(git_dir: Path, path: Path) -> None:
    """Write the files of a new or lost worktree, or only its lost index."""
    with held(git_dir / "crew.lock") as lock:
        is_ready = (git_dir / worktree_admin.READY).exists()
        is_lost = (git_dir / worktree_admin.REFILL).exists()
        has_index = (git_dir / "index").exists()
        if is_ready and has_index and not is_lost:
            return
        if not has_index:
            worktree_admin.clear_lock(git_dir / "index.lock")
            _reset(git_dir, path, hard=is_lost or not is_ready, lock=lock)
        elif is_lost:
            worktree_admin.clear_lock(git_dir / "index.lock")
            _write_files(git_dir, path, lock=lock)
        if worktree_admin.is_own(git_dir):
            copy_index(git_dir)
        worktree_admin.finish_making(git_dir)


@effect("git.worktree_add")
def _add(repo: Repository, path: Path, *, branch: str | None, base: str, lock: int) -> None:
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


@effect("git.switch_detached")
def _switch(repo: Repository, git_dir: Path, path: Path, commit: str, *, lock: int) -> None:
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
        raise _no_commit(commit) if commit_of(repo, commit) is None else failure(args, answer)
    if args[0] == "read-tree":
        worktree_admin.detach(git_dir, commit)


def _no_commit(commit: str) -> NotFound:
    return NotFound(f"there is no commit {commit}", hint="`git log --all` shows the commits")


@effect("git.clean_worktree")
def _clean(git_dir: Path, path: Path, *, keep: tuple[str, ...], lock: int) -> None:
    env = worktree_admin.environment_for(git_dir, path)
    kept = (word for pattern in keep for word in ("-e", pattern))
    args = ("clean", "-q", "-ffdx", *kept)
    git(path, *args, env=env, timeout_s=CHECKOUT_TIMEOUT_S, keep_open=lock)


def abandon(repo: Repository, path: Path) -> None:
    """Give up a worktree of gates that cannot be cleaned; what can be deleted is deleted."""
    path = path.absolute()
    git_dir = worktree_admin.git_dir_for(repo, path)
    with held(repo.common_dir / "crew.lock"):
        _set_aside(path)
        remove(path)  # a file or a link in its place
        if git_dir is not None and git_dir.exists() and git_dir != repo.common_dir:
            worktree_admin.forget(git_dir)
    _delete_set_aside(path)


@effect("git.set_aside")
def _set_aside(path: Path) -> None:
    """Rename the directory, so that the worktree disappears at once."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f".{path.name}.crew-gone-{uuid.uuid4().hex}"))


@effect("git.delete_set_aside")
def _delete_set_aside(path: Path) -> None:
    if path.parent.is_dir():
        for entry in list(path.parent.iterdir()):
            if entry.name.startswith(f".{path.name}.crew-gone-"):
                _make_deletable(entry)
                shutil.rmtree(entry, ignore_errors=True)


def _make_deletable(folder: Path) -> None:
    """Allow the owner to delete what is in the folders below, which code may have forbidden."""
    for top, folders, _ in os.walk(folder):
        for name in folders:
            with suppress(OSError):
                if not (inner := Path(top, name)).is_symlink():
                    inner.chmod(0o700)


@effect("git.delete_empty")
def _delete_empty(path: Path) -> None:
    if path.is_dir():
        (path / ".git").unlink(missing_ok=True)
        path.rmdir()


def _git_dir(repo: Repository, path: Path) -> Path:
    git_dir = worktree_admin.git_dir_for(repo, path)
    if git_dir is None or git_dir == repo.common_dir:
        raise NotFound(
            f"{path} is not a worktree of crew", hint="list them with: git worktree list"
        )
    return git_dir


def _head(repo: Repository, git_dir: Path, path: Path) -> str:
    branch = _symbolic_head(git_dir)
    env = worktree_admin.environment_for(git_dir, path)
    found = ref_tip(repo, branch) if branch is not None else None
    return found or git(path, "rev-parse", "--verify", "HEAD", env=env)


def _symbolic_head(git_dir: Path) -> str | None:
    text = (git_dir / "HEAD").read_text().strip()
    return text.removeprefix("ref: ") if text.startswith("ref: ") else None


def _not_ours(path: Path) -> Conflict:
    return Conflict(
        f"{path} exists and is not a worktree that crew made",
        hint="move it away, or set another folder for worktrees",
        code="worktree_not_ours",
    )
