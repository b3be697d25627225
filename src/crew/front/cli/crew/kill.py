"""`crew kill`: ends the step of an agent."""

from crew.domain.requests import Request, find_agent
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.echo import show_agent
from crew.front.cli.params import agent_argument
from crew.runner.requests.ask_crew import ask
from crew.runner.requests.settled import is_written
from crew.store.fact_log import load_world


@command("kill", example="crew kill A")
@agent_argument()
@pass_call
def kill(call: Call, name: str) -> None:
    """End the step of an agent; its task becomes todo.

    Every process of the step ends, and a checkpoint keeps the worktree.
    """
    workplace = call.workplace()
    written = is_written(find_agent(load_world(workplace.db), name).task or "")

    def settled(world: World) -> bool:
        return not world.agents[name].killing and written(world)

    ask(workplace, Request(verb="kill", args={"agent": name}), settled=settled)
    show_agent(call, workplace, name, f"agent {name} is idle")
