"""`crew cleanup`: removes an agent's worktree after a checkpoint."""

from typing import Any

from crew.domain.requests import Request
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.echo import show_agent
from crew.front.cli.params import agent_argument
from crew.runner.requests.ask_crew import ask


@command("cleanup", example="crew cleanup A")
@agent_argument()
@pass_call
def cleanup(call: Call, name: str) -> None:
    """Remove an agent's worktree, keep its content.

    A checkpoint keeps its content. Agent, task and run stay as they are.
    """
    workplace = call.workplace()

    def settled(world: Any) -> bool:
        task = world.tasks.get(world.agents[name].task or "")
        return task is None or not task.cleaning

    task = ask(workplace, Request(verb="cleanup", args={"agent": name}), settled=settled)
    done = f"the worktree of task {task} is gone, its content is kept"
    show_agent(call, workplace, name, done if task else f"agent {name} has no worktree")
