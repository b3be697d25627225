"""Prints the task or the agent that a command changed, as it is now."""

from typing import TYPE_CHECKING

from crew.front.cli.call import Call
from crew.front.cli.output import narrate, print_json
from crew.runner.views.row_views import agent_view, task_view
from crew.store.fact_log import load_world

if TYPE_CHECKING:
    from crew.workplace import Workplace


def show_task(call: Call, workplace: "Workplace", task: str) -> None:
    """Print the task as JSON for scripts; people get no output."""
    if call.json:
        print_json(task_view(workplace.source.show(task), load_world(workplace.db)))


def show_agent(call: Call, workplace: "Workplace", name: str, words: str) -> None:
    if call.json:
        world = load_world(workplace.db)
        print_json(agent_view(world, world.agents[name]))
    else:
        narrate(call, words)


def show_reply(call: Call, reply: object) -> None:
    """Print crew's answer to an agent that sees no `.crew`."""
    if call.json:
        print_json({"reply": reply})
    else:
        narrate(call, str(reply))
