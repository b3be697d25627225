"""Runs a command that a person bound to a key of the view, for the task that it is about."""

import os
from pathlib import Path

from crew.config.model import KeyBinding
from crew.domain.kernel.errors import Conflict, UsageError
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.templates import Value, shell_command
from crew.runner.by_hand.crew_command import crew_program
from crew.runner.by_hand.task_diff import ELSEWHERE, diff_of
from crew.store.fact_log import load_world
from crew.system.processes.process import run_quietly
from crew.workplace import Workplace


@frozen
class CustomEnd:
    """How the command ended: its exit code, and the last line that it printed."""

    code: int
    last_line: str = ""


def run_custom_command(root: Path, bound: KeyBinding, task: str) -> CustomEnd:
    """Run it to its end; in the task's worktree it is confined as `crew exec` is."""
    workplace = Workplace(root=root)
    try:
        values = place_values(workplace, task)
    finally:
        workplace.close_database()
    argv = shell_command(bound.command, values)
    if "" in argv[4:] or (bound.worktree and not values["Worktree"]):
        raise _needs_task(bound, task)
    if bound.worktree:
        argv = (*crew_program(root), "exec", task, "--", *argv)
    env = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    code, output = run_quietly(argv, cwd=root, env=env)
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    return CustomEnd(code=code, last_line=lines[-1] if lines else "")


def place_values(workplace: Workplace, task: str) -> dict[str, Value]:
    """The values of the template; those about a task are empty without one."""
    places: dict[str, Value] = {
        "RepoRoot": str(workplace.root),
        "GitDir": str(workplace.repo.common_dir),
        "BaseBranch": workplace.target,
    }
    if not task:
        return {**places, "TaskID": "", "Branch": "", "Worktree": ""}
    change, row = diff_of(workplace, task), load_world(workplace.db).tasks.get(task)
    folder = workplace.worktree_of(row) if row is not None and row.worktree else None
    return {
        **places,
        "TaskID": task,
        "Branch": change.branch,
        "BaseBranch": change.base,
        "Worktree": str(folder) if folder is not None and folder.is_dir() else "",
    }


def _needs_task(bound: KeyBinding, task: str) -> Conflict | UsageError:
    if not task:
        return UsageError(
            f"the key {bound.key} needs a task, and none is chosen", hint="choose a task first"
        )
    return Conflict(
        f"the key {bound.key} needs the worktree of task {task}, which has none now",
        hint=f"`crew start {task}` makes one",
        code="key_needs_worktree",
    )
