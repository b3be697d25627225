"""Describes the work on a task's branch, usually without starting git."""

import os
from contextlib import suppress
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.commit_files import checked_out_in, read_line
from crew.git.git_command import ask, git
from crew.git.repository import Repository, ref_tip
from crew.git.task_repository.agent_refs import agent_git_of, branch_tip
from crew.git.task_repository.special_files import special_files, walk
from crew.git.task_repository.take_in import UNTRUSTED, NotTakenIn, seeing
from crew.git.worktrees.clean_check import untouched_head
from crew.git.worktrees.worktree_admin import is_own
from crew.git.worktrees.worktrees import bound_to, follow, git_dir_of_worktree

MOST_SHOWN = 20
_ABBREV = 12


@frozen
class BranchWork:
    """The newest commits, one on each line, and the changes as `git status --short` prints them."""

    commits: str
    uncommitted: str


def read_work(repo: Repository, worktree: Path, *, base: str) -> BranchWork:
    """The work in a worktree since the commit `base`; without a base, only uncommitted work.

    Commits that an agent made in its own repository are taken in first. Git never runs there.
    """
    git_dir = git_dir_of_worktree(repo, worktree)
    with suppress(NotTakenIn):  # crew reports that when it checks the work
        follow(repo, worktree)
    is_unread = untouched_head(worktree, git_dir) is not None or bool(
        special_files(walk(worktree), worktree, git_dir)
    )
    return BranchWork(
        commits=_commits(repo, git_dir, base) if base else "",
        uncommitted="" if is_unread else _uncommitted(repo, worktree),
    )


def _uncommitted(repo: Repository, worktree: Path) -> str:
    return git(worktree, "status", "--short", env=bound_to(repo, worktree))


def _commits(repo: Repository, git_dir: Path, base: str) -> str:
    head = checked_out_in(git_dir, repo.common_dir)
    line = read_line(repo.common_dir, base=base, head=head.commit) if head is not None else None
    if line is None:
        shown = ("--format=%h %s", f"--abbrev={_ABBREV}", "-n", str(MOST_SHOWN))
        return git(repo.common_dir, "log", *shown, f"{base}..HEAD", env={"GIT_DIR": str(git_dir)})
    lines = [f"{commit[:_ABBREV]} {found.subject}" for commit, found in line.items()]
    return "\n".join(lines[:MOST_SHOWN])


def off_head(repo: Repository, git_dir: Path, *, branch: str, head: str) -> tuple[str, ...]:
    """The newest commits of a task's branch that are not in the commit `head`, one on each line.

    An agent made them, and then checked out another branch or a commit.
    """
    if is_own(git_dir):
        tip, env = branch_tip(agent_git_of(git_dir), branch), seeing(repo, git_dir)
    else:
        tip, env = ref_tip(repo, f"refs/heads/{branch}"), {}
    if tip is None or not head or tip == head:
        return ()
    shown = (f"--max-count={MOST_SHOWN}", f"--abbrev={_ABBREV}", "--format=%h %s")
    args = ("rev-list", "--no-commit-header", *shown, tip, "--not", head)
    listed = ask(repo.common_dir, *UNTRUSTED, *args, env=env)
    return tuple(os.fsdecode(listed.out).splitlines()) if listed.code == 0 else ()
