"""`crew dep` and `crew undep`: add and remove a dependency between tasks."""

from typing import TYPE_CHECKING

from crew.domain.kernel.errors import Conflict
from crew.domain.rows.task_item import cycle_through
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.echo import show_task
from crew.front.cli.params import task_argument
from crew.runner.requests.ask_crew import wake

if TYPE_CHECKING:
    from crew.workplace import Workplace


@command("dep", example="crew dep 13 12")
@task_argument()
@task_argument("on")
@pass_call
def dep(call: Call, task: str, on: str) -> None:
    """Make a task wait for another one.

    A dependency that would make a cycle is refused, and the cycle is shown.
    """
    workplace = call.workplace()
    task, on = workplace.source.resolve(task), workplace.source.resolve(on)
    add_dependency(workplace, task, on)
    wake(workplace)
    show_task(call, workplace, task)


def add_dependency(workplace: "Workplace", task: str, on: str) -> None:
    cycle = cycle_through(workplace.snapshot().items, task=task, new_dep=on)
    if cycle is not None:
        way = " → ".join((*cycle, cycle[0]))
        raise Conflict(
            f"task {task} cannot wait for {on}: {way} is a cycle",
            hint=f"break the cycle: crew undep {cycle[-1]} {cycle[0]}"
            if len(cycle) > 1
            else "a task cannot wait for itself",
            code="dependency_cycle",
        )
    workplace.source.add_dep(task, on)


@command("undep", example="crew undep 13 12")
@task_argument()
@task_argument("on")
@pass_call
def undep(call: Call, task: str, on: str) -> None:
    """Let a task no longer wait for another one."""
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    deps = workplace.source.show(task).deps
    bare = on.removeprefix("#").removeprefix("crew-")
    # A dependency may name a task that is gone, and must still be removable.
    workplace.source.remove_dep(task, bare if bare in deps else workplace.source.resolve(on))
    wake(workplace)
    show_task(call, workplace, task)
