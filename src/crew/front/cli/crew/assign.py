"""`crew assign`: gives a task to an idle agent."""

from crew.domain.requests import Request, find_agent
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.echo import show_agent
from crew.front.cli.params import agent_argument, task_argument
from crew.runner.requests.ask_crew import ask
from crew.store.fact_log import load_world


@command("assign", example="crew assign A 12")
@agent_argument()
@task_argument()
@pass_call
def assign(call: Call, name: str, task: str) -> None:
    """Give a task to an idle agent.

    The runner starts it; without a runner it starts with the next `crew run`.
    """
    workplace = call.workplace()
    find_agent(load_world(workplace.db), name)
    task = workplace.source.resolve(task)
    ask(workplace, Request(verb="assign", args={"agent": name, "task": task}))
    show_agent(call, workplace, name, f"agent {name} has task {task}")
