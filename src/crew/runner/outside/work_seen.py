"""Looks at the worktree of a task: its last commit, uncommitted files, and what cannot land."""

import os
from pathlib import Path

from crew.domain.rows.task import Task
from crew.git.checkpoints.ignored_files import is_cache
from crew.git.checkpoints.nested_repositories import strays, unpushed
from crew.git.delivery.landed_refs import integration_tip
from crew.git.task_repository.shown_branches import show_newest
from crew.git.task_repository.take_in import NotTakenIn
from crew.git.worktrees import worktree_admin, worktrees
from crew.git.worktrees.branch_work import off_head
from crew.git.worktrees.persons_commits import take_persons
from crew.git.worktrees.worktree_status import WorktreeState
from crew.runner.outside.outside import WorkSeen
from crew.workplace import Workplace


def look_at_work(workplace: Workplace, task: Task) -> WorkSeen | None:
    """The content of the worktree; None if it does not exist."""
    path = workplace.worktree_of(task)
    if not task.worktree or not is_worktree(workplace, path):
        return None
    try:
        return _seen(workplace, task, path)
    except NotTakenIn as error:
        return WorkSeen(head="", refused=error.message)


def is_worktree(workplace: Workplace, path: Path) -> bool:
    """Whether its `.git` file and git's own record of it exist."""
    git_dir = worktree_admin.git_dir_for(workplace.repo, path)
    if git_dir is None or path.is_symlink() or not os.path.exists(f"{path}/.git"):  # noqa: PTH110
        return False
    return worktree_admin.is_whole(git_dir)


def _seen(workplace: Workplace, task: Task, path: Path) -> WorkSeen:
    repo = workplace.repo
    take_persons(repo, path)
    state = worktrees.state_of(repo, path)
    show_newest(repo, path, task.target)
    git_dir = worktree_admin.git_dir_for(repo, path)
    assert git_dir is not None
    landed = integration_tip(repo, task.target) if state.links else ""
    changed = tuple(p for p in state.changed if not is_cache(p))
    unfinished = (f"an unfinished {state.unfinished}",) if state.unfinished else ()
    return WorkSeen(
        head=state.head or "",
        uncommitted=(*unfinished, *changed),
        nested=strays(repo, path, state, git_dir=git_dir, landed=landed),
        unpushed=unpushed(repo, path, state, git_dir=git_dir, landed=landed),
        off_head=_off_head(workplace, task, state, git_dir),
    )


def _off_head(
    workplace: Workplace, task: Task, state: WorktreeState, git_dir: Path
) -> tuple[str, ...]:
    """The commits of the task's branch that HEAD lacks; none while the branch is checked out."""
    if state.branch == task.branch or state.head is None:
        return ()
    return off_head(workplace.repo, git_dir, branch=task.branch, head=state.head)
