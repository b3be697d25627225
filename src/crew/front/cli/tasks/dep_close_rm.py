"""The commands that tie tasks together and end them: dep, undep, close, rm."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from crew.domain.kernel.errors import Conflict
from crew.domain.requests import Request
from crew.domain.rows.task import FINISHED
from crew.domain.rows.task_item import cycle_through
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import confirm, task_argument, yes_option
from crew.runner.requests.ask_crew import ask, wake
from crew.runner.views.row_views import task_view
from crew.store.fact_log import load_world

if TYPE_CHECKING:
    from crew.workplace import Workplace


def is_written(task: str) -> Callable[[World], bool]:
    """The source has been told."""

    def settled(world: World) -> bool:
        row = world.tasks.get(task)
        return row is None or row.is_written

    return settled


@command("dep", example="crew dep 13 12")
@task_argument()
@task_argument("on")
@pass_call
def dep(call: Call, task: str, on: str) -> None:
    """Make a task wait for another one.

    A dependency that would close a circle is refused, and the circle is shown.
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
            f"task {task} cannot wait for {on}: {way} is a circle",
            hint=f"let one of them go first: crew undep {cycle[-1]} {cycle[0]}"
            if len(cycle) > 1
            else "a task cannot wait for itself",
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
    # A dependency may name a task that is gone: that one above all must be removable.
    workplace.source.remove_dep(task, bare if bare in deps else workplace.source.resolve(on))
    wake(workplace)
    show_task(call, workplace, task)


@command("close", example="crew close 12 --reason 'no longer wanted'")
@task_argument()
@click.option("-r", "--reason", default="", help="Why it is given up.")
@pass_call
def close(call: Call, task: str, reason: str) -> None:
    """Give a task up without merging it.

    Whoever works on it is ended; what is in its worktree is kept as a checkpoint.
    """
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    _close(workplace, task, reason)
    was_started = load_world(workplace.db).tasks[task].branch
    kept = f"; `crew checkpoints {task}` lists what was kept of it" if was_started else ""
    narrate(call, f"task {task} is closed{kept}")
    show_task(call, workplace, task)


def _close(workplace: "Workplace", task: str, reason: str) -> None:
    request = Request(verb="close", args={"task": task, "reason": reason})
    written = is_written(task)

    def settled(world: World) -> bool:
        held = any(agent.task == task for agent in world.agents.values())
        return written(world) and not held

    ask(workplace, request, settled=settled)


@command("rm", example="crew rm 12 --yes")
@task_argument()
@yes_option
@pass_call
def rm(call: Call, task: str, *, yes: bool) -> None:
    """Delete a task.

    It is closed first, so that its worktree goes; its checkpoints stay for `crew restore`.
    """
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    item = workplace.source.show(task)
    _refuse_waited_for(workplace, task)
    if not confirm(f"Delete task {task}, {item.title!r}?", yes=yes):
        narrate(call, "nothing was deleted")
        return
    if item.status not in FINISHED and not item.corrupt:
        _close(workplace, task, "deleted")
    workplace.source.remove(task)
    wake(workplace)
    if call.json:
        print_json({"id": task, "removed": True})
    else:
        narrate(call, f"task {task} is deleted")


def _refuse_waited_for(workplace: "Workplace", task: str) -> None:
    items = workplace.snapshot().items
    waiting = [i.id for i in items if task in i.deps and i.status not in FINISHED and i.id != task]
    if waiting:
        raise Conflict(
            f"task {task} is waited for by {', '.join(waiting)}",
            hint=f"crew undep {waiting[0]} {task}, or `crew close {task}`, which lets them go on",
        )


def show_task(call: Call, workplace: "Workplace", task: str) -> None:
    """The task as it is now, for scripts; people asked for it and need no echo."""
    if call.json:
        print_json(task_view(workplace.source.show(task), load_world(workplace.db)))
