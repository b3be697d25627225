"""`crew close`: closes a task without merging it."""

from typing import TYPE_CHECKING

import click

from crew.domain.quests.position import is_unfinished
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
from crew.runner.views.quest_views import quest_line
from crew.store.fact_log import load_world

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
    if words := _last_of_quest(load_world(workplace.db), task):
        narrate(call, words)
    show_task(call, workplace, task)


def _last_of_quest(world: World, task: str) -> str:
    """What closing the last open item means for its quest; empty if others are still open."""
    position = world.positions.get(task)
    if position is None or not position.key or is_unfinished(world, position.quest):
        return ""
    view = quest_line(world, world.quests[position.quest])
    words = f"it was the last open item of quest {view['id']}"
    built = f"{view['steps_merged']} of {view['steps_all']} items were built"
    return f"{words}, which continues: {built}, {len(view['steps_closed'])} closed by a person"


def close_task(workplace: "Workplace", task: str, reason: str) -> None:
    request = Request(verb="close", args={"task": task, "reason": reason})
    written = is_written(task)

    def settled(world: World) -> bool:
        held = any(agent.task == task for agent in world.agents.values())
        return written(world) and not held

    ask(workplace, request, settled=settled)
