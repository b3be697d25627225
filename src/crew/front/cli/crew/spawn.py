"""`crew spawn` and `crew dismiss`: add and remove idle agents."""

from typing import TYPE_CHECKING, Any

import click

from crew.domain.kernel.errors import UsageError
from crew.domain.requests import Request
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json, say
from crew.front.cli.params import agent_argument, kind_option
from crew.runner.requests.ask_crew import ask
from crew.runner.views.row_views import agent_view
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

    Adds one agent, or COUNT agents. They are called A, B, … unless you give a name. Prints the
    names.
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


def _count(count: int) -> int:
    if not 1 <= count <= MOST_AT_ONCE:
        raise UsageError(
            f"crew cannot add {count} agents", hint=f"give a number from 1 to {MOST_AT_ONCE}"
        )
    return count


def checked_kind(workplace: "Workplace", kind: str | None) -> str:
    """A configured agent kind; the default one if none is named."""
    agents = workplace.settings.agents
    return agents.named(kind or agents.worker_default).name


@command("dismiss", example="crew dismiss C")
@agent_argument()
@pass_call
def dismiss(call: Call, name: str) -> None:
    """Remove an idle agent.

    Its name may be used again. Its logs, costs and events stay.
    """
    workplace = call.workplace()
    ask(workplace, Request(verb="dismiss", args={"agent": name}))
    if call.json:
        print_json({"name": name, "dismissed": True})
    else:
        narrate(call, f"agent {name} is dismissed")
