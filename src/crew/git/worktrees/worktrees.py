"""Creates, reuses, reads and removes worktrees, and repairs every half-made state."""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from crew.domain.kernel.errors import Conflict, CrewError, NotFound
from crew.git.branches import standing_in_the_way
from crew.git.gate_folders.clean_folder import clean_folder
from crew.git.gate_folders.renew_repository import renew_repository
from crew.git.git_command import git
from crew.git.killed_git import clear_lock
from crew.git.promised_objects import bring_if_persons, bring_promised
from crew.git.refs import advance
from crew.git.repository import (
    Repository,
    commit_of,
    is_object_id,
    ref_tip,
    refs_like,
)
from crew.git.task_repository.agent_index import has_sound_index
from crew.git.task_repository.agent_refs import (
    agent_git_of,
    has_long_list,
    is_folder,
    read_head,
    remove,
)
from crew.git.task_repository.branch_holders import checked_out, worktree_with
from crew.git.task_repository.crew_index import settle_index
from crew.git.task_repository.lay_repository import (
    copy_index,
    lay_repository,
)
from crew.git.task_repository.take_in import (
    NotTakenIn,
    follow_agent,
    follow_or_clean,
    note_mirror,
)
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.checkout_files import (
    add_linked,
    finish_checkout,
    no_commit,
    switch_detached,
)
from crew.git.worktrees.folder_removal import (
    delete_empty,
    delete_set_aside,
    set_aside_folder,
    set_aside_repository,
    set_aside_stranger,
)
from crew.git.worktrees.persons_commits import take_persons
from crew.git.worktrees.spare_worktrees import Spare, place
from crew.git.worktrees.submodules import fill_submodules
from crew.git.worktrees.worktree_admin import Kind
from crew.git.worktrees.worktree_list import symbolic_head
from crew.git.worktrees.worktree_status import (
    WorktreeState,
    load_status,
)
from crew.system.file_locks import held


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
    bring_promised(repo, base)
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
                add_linked(repo, path, branch=branch, base=base, lock=lock)
                git_dir = git_dir_of_worktree(repo, path)
    _refuse_stranger(git_dir, path, branch=branch)
    if worktree_admin.is_own(git_dir):
        with suppress(NotTakenIn):  # the agent is told when crew checks its work
            follow_agent(repo, git_dir)
    finish_checkout(repo, git_dir, path)
    return _head(repo, git_dir, path)


def _laid_own(repo: Repository, path: Path, *, branch: str, base: str, spare: Spare | None) -> Path:
    ref = f"refs/heads/{branch}"
    if holder := worktree_with(repo, ref):
        raise checked_out(branch, holder)
    tip = ref_tip(repo, ref)
    if tip is None:
        if refs_like(repo, f"{ref}/"):
            raise standing_in_the_way(branch)
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
    ref = symbolic_head(git_dir) or ""
    commit = ref_tip(repo, ref)
    if commit is None:
        raise no_commit(ref)
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
        raise no_commit(commit)
    bring_if_persons(repo, found)
    git_dir = _detached_git_dir(repo, path, found, kind=kind)
    _refuse_stranger(git_dir, path, branch=None)
    worktree_admin.finish_making(git_dir)  # crew's own from now on, whatever state a kill leaves
    with held(git_dir / "crew.lock") as lock:
        for left in git_dir.glob("*.lock"):
            if left.name != "crew.lock":
                clear_lock(left)
        clean_folder(path, git_dir, keep=keep)
        switch_detached(repo, git_dir, path, found, lock=lock)
        if worktree_admin.is_own(git_dir):
            renew_repository(repo, git_dir, commit=found)
            if not worktree_admin.is_pointed_at(git_dir, path):
                remove(path / ".git")
                worktree_admin.point(git_dir, path)
        fill_submodules(repo, git_dir, path, is_anew=True)


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
                add_linked(repo, path, branch=None, base=commit, lock=lock)
                git_dir = git_dir_of_worktree(repo, path)
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
            follow_agent(repo, git_dir)
    with held(repo.common_dir / "crew.lock"):
        set_aside_folder(path)
        if git_dir is not None and git_dir.exists():
            worktree_admin.forget(git_dir)
    delete_set_aside(path)


def state_of(repo: Repository, path: Path) -> WorktreeState:
    """The uncommitted changes, and the unfinished git operation, if any.

    Commits that an agent made in its own repository are taken in first.
    """
    path = path.absolute()
    git_dir = git_dir_of_worktree(repo, path)
    head = follow_agent(repo, git_dir) if worktree_admin.is_own(git_dir) else None
    state = load_status(path, git_dir, env=worktree_admin.environment_for(git_dir, path))
    return replace(state, branch=head.branch) if head is not None else state


def follow(repo: Repository, path: Path) -> None:
    """Take in what was committed in a worktree's own repository."""
    git_dir = git_dir_of_worktree(repo, path)
    if worktree_admin.is_own(git_dir):
        follow_agent(repo, git_dir)


def bound_to(repo: Repository, path: Path) -> dict[str, str]:
    """The variables that bind git to a worktree, whatever its own `.git` contains."""
    git_dir = git_dir_of_worktree(repo, path.absolute())
    if worktree_admin.is_own(git_dir):
        settle_index(path, git_dir)
    return worktree_admin.environment_for(git_dir, path)


def heal(repo: Repository, path: Path) -> bool:
    """Repair a worktree's own repository, if an agent damaged its HEAD or index.

    Only while no process of the task runs. Files change only by commits of a person. Whether the
    agent's commits are taken in.
    """
    path = path.absolute()
    git_dir = worktree_admin.git_dir_for(repo, path)
    if git_dir is None or not worktree_admin.is_own(git_dir) or not is_folder(path):
        return False
    if not worktree_admin.is_ready(git_dir) or not os.listdir(path):  # noqa: PTH208
        return False  # `ensure_worktree` fills an emptied folder
    branch = symbolic_head(git_dir)
    _repair_pointer(repo, git_dir, path, branch=branch)
    head = follow_or_clean(repo, git_dir)
    if head is None or branch is None or ref_tip(repo, branch) != head.commit:
        take_persons(repo, path)
    if not has_sound_index(agent_git_of(git_dir)):
        settle_index(path, git_dir)
        copy_index(repo, git_dir)
    return head is not None


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
    set_aside_stranger(git_dir, path)
    if not worktree_admin.is_whole(git_dir) and branch and is_folder(agent_git_of(git_dir)):
        worktree_admin.rewrite(git_dir, path, branch=branch)
    if not worktree_admin.is_whole(git_dir):
        if not worktree_admin.is_bare_of_files(path):
            return _adopt_files(repo, path, branch=branch)
        worktree_admin.forget(git_dir)
        delete_empty(path)
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
    agent_git = agent_git_of(git_dir)
    is_damaged = is_own and branch and read_head(agent_git) is None
    if is_damaged and not has_long_list(agent_git):  # a new one would not have all its refs
        _lay_repository(repo, git_dir)
    if not worktree_admin.is_pointed_at(git_dir, path):
        if is_own and branch is not None:
            set_aside_repository(git_dir, path)
        elif is_own:  # what a gate makes is kept nowhere
            remove(path / ".git")
        worktree_admin.point(git_dir, path)


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
        set_aside_folder(path)
        delete_set_aside(path)
        return None
    git_dir = worktree_admin.register(repo, path, branch=branch)
    if worktree_admin.is_own(git_dir):
        _lay_repository(repo, git_dir)
    return git_dir


def _refuse_stranger(git_dir: Path, path: Path, *, branch: str | None) -> None:
    """Refuse a worktree that crew did not create, unless it is on the wanted branch."""
    if worktree_admin.is_ready(git_dir) or worktree_admin.is_bare_of_files(path):
        return
    if branch is None or symbolic_head(git_dir) != f"refs/heads/{branch}":
        raise _not_ours(path)


def git_dir_of_worktree(repo: Repository, path: Path) -> Path:
    """Crew's or git's git dir of a worktree of crew."""
    git_dir = worktree_admin.git_dir_for(repo, path)
    if git_dir is None or git_dir == repo.common_dir:
        raise NotFound(
            f"{path} is not a worktree of crew", hint="list them with: git worktree list"
        )
    return git_dir


def _head(repo: Repository, git_dir: Path, path: Path) -> str:
    branch = symbolic_head(git_dir)
    env = worktree_admin.environment_for(git_dir, path)
    found = ref_tip(repo, branch) if branch is not None else None
    return found or git(path, "rev-parse", "--verify", "HEAD", env=env)


def _not_ours(path: Path) -> Conflict:
    return Conflict(
        f"{path} exists and is not a worktree that crew made",
        hint="move it away, or set another folder: `crew config set worktree.dir DIR`",
        code="worktree_not_ours",
    )
