"""`crew attach`: shows the terminal of a task."""

import sys
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import Conflict, UsageError
from crew.domain.kernel.names import terminal_name
from crew.domain.rows.task import Task
from crew.domain.tasks.readiness import next_step
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.params import task_argument
from crew.front.cli.terminal.open_terminals import runs_at_terminals
from crew.runner.by_hand.task_access import attach_to, has_terminal
from crew.store.fact_log import load_world

if TYPE_CHECKING:
    from crew.workplace import Workplace


@command("attach", example="crew attach 12")
@task_argument()
@pass_call
def attach(call: Call, task: str) -> None:
    """Show the terminal of a task.

    C-g detaches; the agent keeps working.
    """
    workplace = call.workplace()
    name = live_pane(workplace, workplace.source.resolve(task))
    if call.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "attach needs a terminal",
            hint=f"`crew peek {task}` prints what the terminal shows",
            code="no_tty",
        )
    attach_to(workplace, name)


def live_pane(workplace: "Workplace", task: str) -> str:
    """The name of the task's open terminal; raises if there is none."""
    name = terminal_name(task)
    if not has_terminal(workplace, name):
        runs_at_terminals(workplace.folder, workplace.db)  # it may have ended without a report
        row = load_world(workplace.db).tasks.get(task) or Task(id=task)
        raise Conflict(
            f"task {task} has no terminal", hint=next_step(row, "opens one"), code="no_terminal"
        )
    return name
