"""Shows the newest commit of the target branch in a task's own repository.

An agent or a person there merges `main`, and means the `main` of now. Its refs are copies, so crew
renews this one before a step and whenever it looks at the work.
"""

from pathlib import Path

from crew.domain.kernel.names import landed_ref
from crew.git.merges.merges import contains
from crew.git.repository import Repository, ref_tip
from crew.git.task_repository.agent_refs import (
    NEWEST,
    agent_git_of,
    read_head,
    read_text,
)
from crew.git.worktrees.worktree_admin import git_dir_for, is_own
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.foreign_folders import write_below

_LONGEST_REF = 4096


_newest: dict[tuple[str, str], str] = {}


def show_newest(repo: Repository, path: Path, target: str) -> None:
    """Show what the task will be merged with: what landed, or the target if that is newer."""
    git_dir = git_dir_for(repo, path)
    if git_dir is None or not is_own(git_dir):
        return
    landed, branch = ref_tip(repo, landed_ref(target)), ref_tip(repo, f"refs/heads/{target}")
    newest = branch or landed
    if landed is not None and branch is not None and landed != branch:
        if (landed, branch) not in _newest:
            is_newer = contains(repo, ancestor=landed, descendant=branch)
            _newest[landed, branch] = branch if is_newer else landed
        newest = _newest[landed, branch]
    if newest is not None:
        show_branch(git_dir, target, newest)


def is_newest_shown(repo: Repository, path: Path, target: str) -> bool:
    """Whether it is shown already, as a few small files tell. It never starts git."""
    git_dir = git_dir_for(repo, path)
    if git_dir is None or not is_own(git_dir):
        return False
    landed = read_text(f"{repo.common_dir}/{landed_ref(target)}", most=_LONGEST_REF)
    branch = read_text(f"{repo.common_dir}/refs/heads/{target}", most=_LONGEST_REF)
    if landed is None or branch is None:
        return False
    newest = branch if landed == branch else _newest.get((landed, branch))
    return newest is not None and _shown(git_dir, target) == newest


def _shown(crew_git: Path, branch: str) -> str | None:
    return read_text(f"{agent_git_of(crew_git)}/refs/heads/{branch}", most=_LONGEST_REF)


def show_branch(crew_git: Path, branch: str, commit: str) -> None:
    """Move the copy of a branch, unless the agent itself is on it."""
    agent_git, ref = agent_git_of(crew_git), f"refs/heads/{branch}"
    if _shown(crew_git, branch) == commit:
        return
    head = read_head(agent_git)
    if head is None or head.branch == branch:
        return
    write_file(crew_git / NEWEST, f"{commit} {ref}\n".encode())
    write_branch(agent_git, ref, commit)


@effect("git.show_branch")
def write_branch(agent_git: Path, ref: str, commit: str) -> None:
    """Move a branch in a task's own repository, unless the agent put something in its way."""
    write_below(agent_git, ref, f"{commit}\n".encode())
