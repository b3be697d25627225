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
    tips = (ref_tip(repo, landed_ref(target)), ref_tip(repo, f"refs/heads/{target}"))
    landed, branch = tips
    if landed is None or branch is None or landed == branch:
        newest = branch or landed
    else:
        if (landed, branch) not in _newest:
            is_newer = contains(repo, ancestor=landed, descendant=branch)
            _newest[landed, branch] = branch if is_newer else landed
        newest = _newest[landed, branch]
    if newest is not None:
        show_branch(git_dir, target, newest)


def show_branch(crew_git: Path, branch: str, commit: str) -> None:
    """Move the copy of a branch, unless the agent itself is on it."""
    agent_git, ref = agent_git_of(crew_git), f"refs/heads/{branch}"
    if read_text(f"{agent_git}/{ref}", most=_LONGEST_REF) == commit:
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
