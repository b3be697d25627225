"""The commands for agents: spawn, dismiss, assign, kill, retry, cleanup."""

from typing import TYPE_CHECKING, Any

import click

from crew.domain.kernel.errors import UsageError
from crew.domain.requests import Request, find_agent
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json, say
from crew.front.cli.params import agent_argument, kind_option, subject_argument, task_argument
from crew.front.cli.resolve_ids import retried
from crew.front.cli.tasks.dep_close_rm import is_written
from crew.runner.requests.ask_crew import ask
from crew.runner.views.row_views import agent_view, task_view
from crew.store.fact_log import load_world

if TYPE_CHECKING:
    from crew.workplace import Workplace

MOST_AT_ONCE = 1000


@command("spawn", example="crew spawn\ncrew spawn 3\ncrew spawn Ann --agent claude")
@click.argument("name_or_count", metavar="[NAME|COUNT]", required=False, default="1")
@kind_option("The configured agent behind it; else [agents] worker_default.")
@pass_call
def spawn(call: Call, name_or_count: str, kind: str | None) -> None:
    """Add idle agents.

    One, or as many as you say, called A, B, … unless you give a name. Prints the names.
    """
    workplace = call.workplace()
    args: dict[str, Any] = {"kind": checked_kind(workplace, kind), "chosen": kind is not None}
    if name_or_count.lstrip("-").isdecimal():
        args["count"] = _count(int(name_or_count))
    else:
        args["name"] = name_or_count
    names = ask(workplace, Request(verb="spawn", args=args))
    if call.json:
        world = load_world(workplace.db)
        print_json([agent_view(world, world.agents[name]) for name in names])
    else:
        for name in names:
            say(name)


@command("dismiss", example="crew dismiss C")
@agent_argument()
@pass_call
def dismiss(call: Call, name: str) -> None:
    """Remove an idle agent.

    Its name may be used again; what it did stays in the logs, the costs and the events.
    """
    workplace = call.workplace()
    ask(workplace, Request(verb="dismiss", args={"agent": name}))
    if call.json:
        print_json({"name": name, "dismissed": True})
    else:
        narrate(call, f"agent {name} is dismissed")


def _count(count: int) -> int:
    if not 1 <= count <= MOST_AT_ONCE:
        raise UsageError(f"{count} agents cannot be made", hint=f"name 1 to {MOST_AT_ONCE}")
    return count


def checked_kind(workplace: "Workplace", kind: str | None) -> str:
    """A kind that is configured; the default one if none is named."""
    agents = workplace.settings.agents
    return agents.named(kind or agents.worker_default).name


@command("assign", example="crew assign A 12")
@agent_argument()
@task_argument()
@pass_call
def assign(call: Call, name: str, task: str) -> None:
    """Give a task to an idle agent.

    The runner starts it; without one it starts with the next `crew run`.
    """
    workplace = call.workplace()
    find_agent(load_world(workplace.db), name)
    task = workplace.source.resolve(task)
    ask(workplace, Request(verb="assign", args={"agent": name, "task": task}))
    _tell(call, workplace, name, f"agent {name} has task {task}")


@command("kill", example="crew kill A")
@agent_argument()
@pass_call
def kill(call: Call, name: str) -> None:
    """End what an agent does; its task goes back to todo.

    Every process of the step ends, and what is in the worktree is kept as a checkpoint.
    """
    workplace = call.workplace()
    written = is_written(find_agent(load_world(workplace.db), name).task or "")

    def settled(world: World) -> bool:
        return not world.agents[name].killing and written(world)

    ask(workplace, Request(verb="kill", args={"agent": name}), settled=settled)
    _tell(call, workplace, name, f"agent {name} is idle")


@command("retry", example="crew retry A\ncrew retry 12")
@subject_argument()
@pass_call
def retry(call: Call, subject: str) -> None:
    """Let a stuck agent or a failed task try again."""
    workplace = call.workplace()
    named = retried(workplace, subject)
    done = str(ask(workplace, Request(verb="retry", args={"subject": named})))
    world = load_world(workplace.db)
    if done in world.agents:
        _tell(call, workplace, done, f"agent {done} tries again")
    elif call.json:
        print_json(task_view(workplace.source.show(done), world))
    else:
        narrate(call, f"task {done} is todo again")


@command("cleanup", example="crew cleanup A")
@agent_argument()
@pass_call
def cleanup(call: Call, name: str) -> None:
    """Remove an agent's worktree, keep its content.

    What is in it becomes a checkpoint; agent, task and run stay as they are.
    """
    workplace = call.workplace()

    def settled(world: Any) -> bool:
        task = world.tasks.get(world.agents[name].task or "")
        return task is None or not task.cleaning

    task = ask(workplace, Request(verb="cleanup", args={"agent": name}), settled=settled)
    done = f"the worktree of task {task} is gone, its content is kept"
    _tell(call, workplace, name, done if task else f"agent {name} has no worktree")


def _tell(call: Call, workplace: "Workplace", name: str, words: str) -> None:
    if call.json:
        world = load_world(workplace.db)
        print_json(agent_view(world, world.agents[name]))
    else:
        narrate(call, words)
