"""`crew diff`: finds the commits to compare and the files of a task, and runs the diff command."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from crew.domain.kernel.errors import Conflict, CrewError, NotFound
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import branch_name
from crew.domain.rows.task import TaskState
from crew.git.repository import commit_of
from crew.git.task_repository.take_in import refuse_special
from crew.git.worktrees.nested_view import without_dirty_links
from crew.git.worktrees.worktree_list import worktree_paths
from crew.git.worktrees.worktrees import bound_to, ensure_detached, follow, remove_worktree
from crew.store.fact_log import load_world
from crew.system.crash_points import effect
from crew.system.processes.process import run_in_terminal
from crew.workplace import Workplace

ELSEWHERE = frozenset(
    [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_SHALLOW_FILE",
        "GIT_GRAFT_FILE",
    ]
)
"""Git variables that would direct git to another repository than the worktree's."""


@frozen
class ShownDiff:
    """The diff to show; `landed` is the merge commit of a task whose branch was deleted."""

    task: str
    branch: str
    base: str
    landed: str = ""


def diff_of(workplace: Workplace, task: str) -> ShownDiff:
    item = workplace.source.show(task)
    row = load_world(workplace.db).tasks.get(task)
    change = ShownDiff(
        task=task,
        branch=(row.branch if row else "") or branch_name(task, item.issue),
        base=(row.target if row else "") or item.base or workplace.target,
    )
    is_there = commit_of(workplace.repo, f"refs/heads/{change.branch}") is not None
    if is_there or row is None or not row.landed_commit:
        return change
    return replace(change, base=f"{row.landed_commit}^1", landed=row.landed_commit)


@contextmanager
def files_of(workplace: Workplace, change: ShownDiff) -> Iterator[Path]:
    """The task's worktree; without one, a temporary checkout of its branch."""
    repo = workplace.repo
    own = workplace.worktrees / change.task
    if own in worktree_paths(repo) and own.is_dir():
        follow(repo, own)
        refuse_special(own, Path(bound_to(repo, own)["GIT_DIR"]))
        yield own
        return
    with suppress(NotFound):  # its repository may outlive its folder
        follow(repo, own)
    head = change.landed or commit_of(repo, f"refs/heads/{change.branch}")
    if head is None:
        raise _nothing_to_show(workplace, change)
    folder = workplace.worktrees / f".diff-{change.task}-{os.getpid()}"
    try:
        ensure_detached(repo, folder, head, kind=workplace.worktree_kind)
        yield folder
    finally:
        remove_worktree(repo, folder)


def _nothing_to_show(workplace: Workplace, change: ShownDiff) -> CrewError:
    task = change.task
    status = workplace.source.show(task).status
    if status == TaskState.TODO:
        return Conflict(
            f"task {task} has changed nothing yet: it was not started",
            hint="`crew run` lets the agents start, `crew list` shows what they do",
            code="not_started",
        )
    hint = f"`crew checkpoints {task}` lists what was kept of it"
    return NotFound(f"task {task} has neither a worktree nor a branch {change.branch}", hint=hint)


@effect("runner.run_diff")
def run_diff(
    workplace: Workplace, argv: tuple[str, ...], folder: Path, *, keep_output: bool
) -> tuple[int, bytes]:
    """Run the diff command with the caller's environment: their pager, colours and diff tool.

    Its git reads the folder's files, but no setting of the repository that the agent has there. On
    a terminal, git sends its output through a filter that removes control characters to the pager.
    """
    env = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    env |= {**bound_to(workplace.repo, folder), **without_dirty_links(folder)}
    env |= {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    env["GIT_PAGER"] = _safe_pager(os.environ.get("GIT_PAGER"))
    return run_in_terminal(argv, cwd=folder, env=env, keep_output=keep_output)


def _safe_pager(chosen: str | None) -> str:
    """The person's pager behind the filter; git starts it only if its output is a terminal."""
    found = 'pager="$(env -u GIT_PAGER git var GIT_PAGER)"; eval "${pager:-cat}"'
    # Python must not look for modules in the folder, where an agent could have written one.
    make_safe = shlex.join((sys.executable, "-P", "-m", "crew", "_printable"))
    return f"{make_safe} | {{ {found if chosen is None else chosen or 'cat'}; }}"
