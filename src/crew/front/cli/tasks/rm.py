"""`crew rm`: deletes a task."""

from typing import TYPE_CHECKING

from crew.domain.kernel.errors import Conflict
from crew.domain.rows.task import FINISHED
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import confirm, task_argument, yes_option
from crew.front.cli.tasks.close import close_task
from crew.runner.requests.ask_crew import wake

if TYPE_CHECKING:
    from crew.workplace import Workplace


@command("rm", example="crew rm 12 --yes")
@task_argument()
@yes_option
@pass_call
def rm(call: Call, task: str, *, yes: bool) -> None:
    """Delete a task.

    It is closed first, and its worktree is removed. Its checkpoints stay for `crew restore`.
    """
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    item = workplace.source.show(task)
    _refuse_waited_for(workplace, task)
    if not confirm(f"Delete task {task}, {item.title!r}?", yes=yes):
        _tell(call, task, removed=False)
        return
    if item.status not in FINISHED and not item.corrupt:
        close_task(workplace, task, "deleted")
    workplace.source.remove(task)
    wake(workplace)
    _tell(call, task, removed=True)


def _tell(call: Call, task: str, *, removed: bool) -> None:
    if call.json:
        print_json({"id": task, "removed": removed})
    else:
        narrate(call, f"task {task} is deleted" if removed else "nothing was deleted")


def _refuse_waited_for(workplace: "Workplace", task: str) -> None:
    items = workplace.snapshot().items
    waiting = [i.id for i in items if task in i.deps and i.status not in FINISHED and i.id != task]
    if waiting:
        raise Conflict(
            f"other tasks wait for task {task}: {', '.join(waiting)}",
            hint=f"crew undep {waiting[0]} {task}, or `crew close {task}`, which unblocks them",
            code="has_dependents",
        )
