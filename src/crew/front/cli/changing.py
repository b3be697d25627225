"""The commands that change a task: edit, dep, undep, comment, close, rm."""

import os
import pwd
import time
from typing import TYPE_CHECKING, Any

import click

from crew.domain.errors import Conflict, UsageError
from crew.domain.requests import Request
from crew.domain.task import FINISHED
from crew.domain.task_item import cycle_through
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command import command
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import (
    complete_kinds,
    complete_tasks,
    confirm,
    task_argument,
    text_or_stdin,
    yes_option,
)
from crew.runner.asking import ask, wake
from crew.runner.views import task_view
from crew.store.facts import load_world
from crew.tasks.source import NewComment, TaskChanges

if TYPE_CHECKING:
    from crew.runner.workplace import Workplace


@command(
    "edit",
    example="crew edit 12 --title 'Fix the login page' --priority 0\ncrew edit 12 --status todo",
)
@task_argument()
@click.option("-t", "--title", help="The new title.")
@click.option("-b", "--body", help="The new text; - reads it from stdin.")
@click.option("--priority", type=click.IntRange(0, 4), help="0 is the most urgent, 4 the least.")
@click.option(
    "--label", "labels", multiple=True, help="The new labels (repeatable); '' clears them."
)
@click.option("--parent", metavar="ID", shell_complete=complete_tasks, help="'' clears it.")
@click.option("--agent", metavar="A", shell_complete=complete_kinds, help="'' clears it.")
@click.option("--base", metavar="BRANCH", help="'' clears it.")
@click.option("--issue", type=click.IntRange(0), metavar="N", help="0 clears it.")
@click.option("--skip-review/--review", default=None, help="Whether it does without a review.")
@click.option("--status", type=click.Choice(["todo", "closed"]), help="todo reopens a failed task.")
@pass_call
def edit(
    call: Call, /, task: str, *, status: str | None, labels: tuple[str, ...], **flags: Any
) -> None:
    """Change a task."""
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    changes = _changes(workplace, task, labels, flags)
    if changes is None and status is None:
        raise UsageError("nothing to change was named", hint="`crew edit --help` lists the flags")
    if changes is not None:
        workplace.source.edit(task, changes)
        wake(workplace)
    if status is not None:
        _move(workplace, task, status)
    _show(call, workplace, task)


def _changes(
    workplace: "Workplace", task: str, labels: tuple[str, ...], flags: dict[str, Any]
) -> TaskChanges | None:
    flags["body"] = text_or_stdin(flags["body"])
    if flags["parent"]:
        flags["parent"] = workplace.source.resolve(flags["parent"])
        _refuse_own_ancestor(workplace, task, flags["parent"])
    if flags["agent"]:
        workplace.settings.agents.named(flags["agent"])
    if labels:
        flags["labels"] = tuple(label for label in labels if label)
    given = {name: value for name, value in flags.items() if value is not None}
    return TaskChanges(**given) if given else None


def _refuse_own_ancestor(workplace: "Workplace", task: str, parent: str) -> None:
    items = workplace.snapshot().by_id
    line = [task]
    above: str | None = parent
    while above is not None and above in items:
        line.append(above)
        if above == task:
            raise Conflict(
                f"parents would go in a circle: {' → '.join(line)}", hint="break it first"
            )
        if line.count(above) > 1:
            return
        above = items[above].parent


def _move(workplace: "Workplace", task: str, status: str) -> None:
    if str(workplace.source.show(task).status) == status:
        return
    if status == "todo":
        ask(workplace, Request(verb="retry", args={"subject": task}), settled=_is_written(task))
    else:
        ask(workplace, Request(verb="close", args={"task": task}), settled=_is_written(task))


def _is_written(task: str) -> Any:
    """The source has been told."""

    def settled(world: World) -> bool:
        row = world.tasks.get(task)
        return row is None or row.corrupt or row.state == row.written

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
    wake(workplace)
    _show(call, workplace, task)


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
    _show(call, workplace, task)


@command("comment", example="crew comment 12 'use the new API'\ngit diff | crew comment 12 -")
@task_argument()
@click.argument("text")
@click.option("--author", help="Who says it; you, or the agent whose worktree this is.")
@pass_call
def comment(call: Call, task: str, text: str, author: str | None) -> None:
    """Say something about a task."""
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    said = NewComment(
        author=author or os.environ.get("CREW_AGENT") or _user(),
        text=text_or_stdin(text) or "",
        at=time.time(),
    )
    workplace.source.comment(task, said)
    wake(workplace)
    _show(call, workplace, task)


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "somebody"


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
    _show(call, workplace, task)


def _close(workplace: "Workplace", task: str, reason: str) -> None:
    request = Request(verb="close", args={"task": task, "reason": reason})
    written = _is_written(task)

    def settled(world: World) -> bool:
        held = any(agent.task == task for agent in world.agents.values())
        return bool(written(world)) and not held

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


def _show(call: Call, workplace: "Workplace", task: str) -> None:
    """The task as it is now, for scripts; people asked for it and need no echo."""
    if call.json:
        print_json(task_view(workplace.source.show(task), load_world(workplace.db)))
