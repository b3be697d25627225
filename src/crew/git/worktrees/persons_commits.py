"""Takes a person's commits on a task's branch into the task's own repository.

A person checks out the branch `crew-3`, changes something and commits it. The agent then continues
from there, if it has not moved itself. Only while no process of the task runs.
"""

from pathlib import Path

from crew.git import lfs
from crew.git.git_command import ask
from crew.git.repository import Repository, ref_tip
from crew.git.task_repository.agent_refs import agent_git_of, read_head
from crew.git.task_repository.crew_index import bring_index, settle_held_index
from crew.git.task_repository.lay_repository import copy_index
from crew.git.task_repository.shown_branches import write_branch
from crew.git.task_repository.store_objects import LONG_S
from crew.git.task_repository.take_in import (
    is_ahead,
    mirror_of,
    mirrored,
    note_mirror,
)
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.worktree_status import unfinished_in
from crew.system.crash_points import effect
from crew.system.file_locks import held


def take_persons(repo: Repository, path: Path) -> bool:
    """Whether commits of a person were taken in; not if an uncommitted change is in their way."""
    crew_git = worktree_admin.git_dir_for(repo, path)
    if crew_git is None or not worktree_admin.is_own(crew_git):
        return False
    branch, noted = mirror_of(crew_git), mirrored(crew_git)
    tip = ref_tip(repo, branch) if branch else None
    if branch is None or tip is None or not noted or tip in noted:
        return False
    head = read_head(agent_git_of(crew_git))
    is_on_it = (
        head is not None and f"refs/heads/{head.branch}" == branch and head.commit == noted[-1]
    )
    if not is_on_it or unfinished_in(crew_git) or not is_ahead(repo, tip, of=noted[-1]):
        return False
    with held(crew_git / "crew.lock"):
        return _take(repo, path, crew_git, branch, old=noted[-1], new=tip)


def _take(repo: Repository, path: Path, crew_git: Path, branch: str, *, old: str, new: str) -> bool:
    settle_held_index(path, crew_git, to=old)
    if not _write_files(path, crew_git, old=old, new=new):
        return False
    copy_index(repo, crew_git)
    write_branch(agent_git_of(crew_git), branch, new)
    note_mirror(crew_git, new)
    bring_index(path, crew_git)
    return True


@effect("git.write_persons_files")
def _write_files(path: Path, crew_git: Path, *, old: str, new: str) -> bool:
    """Write the files that changed; none, if one of them has an uncommitted change."""
    env = worktree_admin.environment_for(crew_git, path)
    ask(path, "update-index", "-q", "--refresh", env=env, timeout_s=LONG_S)
    lfs.settle(path, crew_git)
    is_written = ask(path, "read-tree", "-m", "-u", old, new, env=env, timeout_s=LONG_S).code == 0
    lfs.settle(path, crew_git, fills=True)
    return is_written
