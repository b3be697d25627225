"""`crew exec`: runs a command in a task's worktree."""

import os
import shutil
from typing import TYPE_CHECKING

import click

from crew.domain.kernel.errors import Conflict, NotFound
from crew.domain.rows.task import Task
from crew.domain.tasks.readiness import next_step
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.params import task_argument
from crew.runner.by_hand.task_access import run_there
from crew.runner.prompts.step_orders import step_environment
from crew.store.fact_log import load_world

if TYPE_CHECKING:
    from crew.domain.rows.run import Run
    from crew.workplace import Workplace


@command("exec", example="crew exec 12 -- ls -l\ncrew exec 12 -- make test")
@task_argument()
@click.argument("argv", metavar="-- CMD…", nargs=-1, required=True, type=click.UNPROCESSED)
@pass_call
def execute(call: Call, task: str, argv: tuple[str, ...]) -> None:
    """Run a command in a task's worktree.

    It runs alongside the agent, and crew exits with the command's exit code. It works on the
    agent's files, so the sandbox confines it as it does a gate; CREW_SANDBOX_MODE=off turns that
    off for one call.
    """
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    world = load_world(workplace.db)
    row = world.tasks.get(task)
    path = workplace.worktree_of(row) if row and row.worktree else None
    if row is None or path is None or not path.is_dir():
        hint = next_step(row or Task(id=task), "makes one")
        raise Conflict(f"task {task} has no worktree now", hint=hint, code="no_worktree")
    if shutil.which(argv[0], path=os.environ.get("PATH")) is None:
        raise NotFound(f"there is no command {argv[0]}", hint="check its name and your PATH")
    variables = _environment(workplace, world.runs.get(row.run or ""), row)
    run_there(workplace, argv, variables, folder=path)


def _environment(workplace: "Workplace", run: "Run | None", task: Task) -> dict[str, str]:
    return step_environment(workplace, run, task) if run is not None else {}
