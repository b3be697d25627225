"""Prepares a new worktree for work: copies, links, excludes and setup commands, once.

A mark in the worktree's git dir records that it is prepared. Another one, written before the first
copy, records that the worktree held no work yet. After a kill in between, everything is repeated.
"""

import os
from pathlib import Path

from crew.config.model import AgentSettings
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import branch_name, landed_ref, made_ref
from crew.domain.rows.task import Task
from crew.git.checkpoints.checkpoints import checkpoints
from crew.git.gate_folders.clean_folder import untracked_in
from crew.git.git_command import git
from crew.git.refs import delete_ref
from crew.git.repository import Repository, commit_of
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.excludes import exclude_in_worktree
from crew.git.worktrees.worktree_list import delete_branch
from crew.git.worktrees.worktrees import remove_worktree, state_of
from crew.runner.outside.setup_commands import (
    Setup,
    agent_script,
    note,
    repository_command,
    run_setup,
)
from crew.runner.outside.worktree_files import bring_belongings
from crew.store.quick_rows import find_run
from crew.system.crash_points import effect
from crew.system.threads import in_thread
from crew.workplace import Workplace

FURNISHED = "crew-furnished"
MADE = "crew-made"
"""In the git dir of a gate's worktree: the paths that setting it up has made."""
UNTOUCHED = "crew-untouched"
"""The mark that the worktree held no work before crew prepared it."""


@frozen
class _Site:
    """A worktree that is being prepared, and what it gets besides copies and links."""

    workplace: Workplace
    path: Path
    git_dir: Path
    log: Path
    patterns: tuple[str, ...] = ()
    setups: tuple[Setup, ...] = ()


def worker_settings(workplace: Workplace, task: Task) -> AgentSettings:
    """The configuration of the agent kind that the task's run uses."""
    agents = workplace.settings.agents
    run = find_run(workplace.db, task.run or "")
    kind = run.agent_kind if run is not None else None
    return agents.named(kind or task.wants_agent or agents.worker_default)


async def furnish(
    workplace: Workplace,
    task: Task,
    path: Path,
    settings: AgentSettings,
    *,
    is_new: bool = False,
) -> None:
    """Prepare a task's new worktree for its agent; one that is prepared stays as it is.

    If that fails, a worktree without any work is removed again, together with its branch. `is_new`:
    the directory was made a moment ago, so no process can have written into it.
    """
    git_dir = _git_dir(workplace, path)
    if _has_mark(git_dir, FURNISHED, path):
        return
    branch = task.branch or branch_name(task.id, task.issue)
    site = _Site(
        workplace=workplace,
        path=path,
        git_dir=git_dir,
        log=workplace.task_log(task.id),
        patterns=settings.exclude_patterns,
        setups=(
            *agent_script(workplace, settings, task, path=path, branch=branch),
            *repository_command(workplace, task=task.id, path=path, branch=branch),
        ),
    )
    if _is_plain(site):
        _mark(git_dir, FURNISHED, path)
        return
    await in_thread(_look_before, site, task, branch, is_new=is_new)
    try:
        await _furnish(site)
    except CrewError:
        if _has_mark(git_dir, UNTOUCHED, path):
            await in_thread(_take_back, site, task, branch)
        raise


async def furnish_gate(workplace: Workplace, path: Path, *, task: str) -> None:
    """Prepare a worktree for gates; if that fails, it is removed again.

    Each gate finds it clean. So it is prepared again unless `[gate] keep` names all that was made.
    """
    git_dir = _git_dir(workplace, path)
    if _has_mark(git_dir, FURNISHED, path) and await in_thread(_has_all, git_dir, path):
        return
    site = _Site(
        workplace=workplace,
        path=path,
        git_dir=git_dir,
        log=workplace.task_log(task) if task else workplace.logs / "merge.log",
        setups=repository_command(workplace, task=task, path=path, branch=""),
    )
    try:
        await _furnish(site)
        if not _is_plain(site):
            await in_thread(_note_made, git_dir, path)
    except CrewError:
        await in_thread(remove_worktree, workplace.repo, path)
        raise


def _has_all(git_dir: Path, path: Path) -> bool:
    """Whether everything that was made for the gates is still in the worktree."""
    try:
        made = os.fsdecode((git_dir / MADE).read_bytes()).split("\0")
    except FileNotFoundError:
        return True
    return all(os.path.lexists(path / name) for name in made)


@effect("furnish.note_made")
def _note_made(git_dir: Path, path: Path) -> None:
    try:
        made = untracked_in(path, git_dir)
    except OSError as error:
        raise _cannot_set_up(path, error) from error
    (git_dir / MADE).write_bytes(os.fsencode("\0".join(made)))


async def _furnish(site: _Site) -> None:
    await in_thread(_bring_in, site)
    for setup in site.setups:
        await run_setup(site.workplace, setup, path=site.path, log=site.log)
    _mark(site.git_dir, FURNISHED, site.path)


def _bring_in(site: _Site) -> None:
    workplace = site.workplace
    try:
        brought = bring_belongings(
            workplace.repo,
            workplace.settings.worktree,
            worktree=site.path,
            worktrees=workplace.worktrees,
        )
        exclude_in_worktree(workplace.repo, site.path, (*site.patterns, *brought.patterns))
        if brought.remarks:
            note(site.log, *brought.remarks)
    except OSError as error:
        raise _cannot_set_up(site.path, error) from error


def _cannot_set_up(path: Path, error: OSError) -> CrewError:
    return CrewError(
        f"the worktree {path} cannot be set up: {error}",
        hint="check the disk, and [worktree] copy and link in the config; then start it again",
    )


def _is_plain(site: _Site) -> bool:
    asked = site.workplace.settings.worktree
    return not (asked.copy or asked.link or site.patterns or site.setups)


def _look_before(site: _Site, task: Task, branch: str, *, is_new: bool) -> None:
    """Mark a worktree without work, before copies and links hide that."""
    if _has_mark(site.git_dir, UNTOUCHED, site.path):
        return
    # Git reads every file of a fresh checkout again: this check takes a quarter of its time.
    if (is_new or _is_clean(site.workplace.repo, site.path, branch)) and _is_kept(
        site, task, branch
    ):
        _mark(site.git_dir, UNTOUCHED, site.path)


def _is_clean(repo: Repository, path: Path, branch: str) -> bool:
    state = state_of(repo, path)
    return (state.branch, state.changed, state.unfinished) == (branch, (), None)


def _is_kept(site: _Site, task: Task, branch: str) -> bool:
    """Whether there is no checkpoint to lose, and no commit that only this branch has."""
    repo = site.workplace.repo
    head = commit_of(repo, f"refs/heads/{branch}")
    return (
        head is not None
        and not checkpoints(repo, task.id)
        and _is_held_elsewhere(repo, task, branch, head)
    )


def _is_held_elsewhere(repo: Repository, task: Task, branch: str, head: str) -> bool:
    others = (made_ref(branch), landed_ref(task.target), f"refs/heads/{task.target}")
    return git(repo.common_dir, "for-each-ref", f"--contains={head}", *others) != ""


def _take_back(site: _Site, task: Task, branch: str) -> None:
    """Remove the new worktree; its branch too, if that is new and has no commit of its own."""
    repo = site.workplace.repo
    remove_worktree(repo, site.path)
    head = commit_of(repo, f"refs/heads/{branch}")
    made = commit_of(repo, made_ref(branch))
    if task.branch or head is None or made is None:
        return
    if _is_held_elsewhere(repo, task, branch, head):
        delete_branch(repo, branch, expected=head)
        delete_ref(repo, made_ref(branch), expected=made)


def _git_dir(workplace: Workplace, path: Path) -> Path:
    git_dir = worktree_admin.git_dir_for(workplace.repo, path)
    if git_dir is None:
        raise CrewError(f"the worktree {path} is gone", hint="start the task again")
    return git_dir


def _has_mark(git_dir: Path, name: str, path: Path) -> bool:
    """Whether the mark belongs to this directory; a lost worktree that was made again has none."""
    try:
        return (git_dir / name).read_text() == _made_at(path)
    except OSError:
        return False


@effect("furnish.mark")
def _mark(git_dir: Path, name: str, path: Path) -> None:
    (git_dir / name).write_text(_made_at(path))


def _made_at(path: Path) -> str:
    """When the worktree's `.git` file was written, which happens once."""
    return str((path / ".git").stat().st_mtime_ns)
