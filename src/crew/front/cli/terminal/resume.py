"""`crew resume`: continues a run in the foreground."""

from typing import TYPE_CHECKING

import click

from crew.domain.kernel.errors import Conflict, CrewError, NotFound
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.terminal.foreground import drive
from crew.store.fact_log import load_world

if TYPE_CHECKING:
    from crew.workplace import Workplace


@command("resume", example="crew resume 12.1\ncrew resume 12")
@click.argument("run")
@pass_call
def resume(call: Call, run: str) -> int:
    """Continue a run that was interrupted, failed or not merged.

    It continues in the foreground, with its own options, as `crew loop` does. A running one is
    followed, a stuck agent tries again, a complete run is merged, and after a failure a new run
    begins in the same agent session.
    """
    workplace = call.workplace()
    return drive(call, workplace, _task_of(workplace, run))


def _task_of(workplace: "Workplace", named: str) -> str:
    """The task of a run's id, or of a task's id."""
    world = load_world(workplace.db)
    if found := world.runs.get(named.removeprefix("#").removeprefix("crew-")):
        current = world.tasks[found.task].run
        if current != found.id:
            raise Conflict(
                f"run {found.id} is not the last run of task {found.task}",
                hint=f"`crew resume {current}` continues the last one",
            )
        return found.task
    try:
        task = workplace.source.resolve(named)
    except CrewError:
        raise _no_run(named) from None
    if not _is_begun(world, task) and not workplace.source.show(task).terms:
        raise _no_run(named)
    return task


def _is_begun(world: World, task: str) -> bool:
    return task in world.tasks and world.tasks[task].run is not None


def _no_run(named: str) -> NotFound:
    return NotFound(f"there is no run {named!r}", hint="`crew runs` lists them")
