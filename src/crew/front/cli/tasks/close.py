"""`crew close`: closes a task without merging it."""

from typing import TYPE_CHECKING

import click

from crew.domain.requests import Request
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.echo import show_task
from crew.front.cli.output import narrate
from crew.front.cli.params import task_argument
from crew.runner.requests.ask_crew import ask
from crew.runner.requests.settled import is_written
from crew.runner.upkeep.kept_work import kept_views

if TYPE_CHECKING:
    from crew.workplace import Workplace


@command("close", example="crew close 12 --reason 'no longer wanted'")
@task_argument()
@click.option("-r", "--reason", default="", help="Why the task is closed.")
@pass_call
def close(call: Call, task: str, reason: str) -> None:
    """Close a task without merging it.

    Its agent is ended, and a checkpoint keeps its worktree.
    """
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    close_task(workplace, task, reason)
    kept = f"; `crew checkpoints {task}` lists what was kept of it"
    narrate(call, f"task {task} is closed{kept if kept_views(workplace, task) else ''}")
    show_task(call, workplace, task)


def close_task(workplace: "Workplace", task: str, reason: str) -> None:
    request = Request(verb="close", args={"task": task, "reason": reason})
    written = is_written(task)

    def settled(world: World) -> bool:
        held = any(agent.task == task for agent in world.agents.values())
        return written(world) and not held

    ask(workplace, request, settled=settled)
