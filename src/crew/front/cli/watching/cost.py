"""`crew cost`: adds up the tokens and dollars of runs, channels and managers."""

from typing import Any

import click

from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import UNKNOWN, dollars, narrate, print_json, table, thousands
from crew.runner.cost_views import WAYS, cost_views, spenders
from crew.runner.views.row_views import total
from crew.store.fact_log import load_world, run_agents

HEAD = ("RUNS", "STEPS", "INPUT", "OUTPUT", "COST")


@command("cost", example="crew cost\ncrew cost --by day --json")
@click.option("--by", type=click.Choice(WAYS), default="task", help="How to group the sums.")
@pass_call
def cost(call: Call, by: str) -> None:
    """Add up tokens and dollars.

    An unknown cost is shown as unknown, never as 0.
    """
    workplace = call.workplace()
    world = load_world(workplace.db)
    agents = run_agents(workplace.db) if by == "agent" else {}
    settings = workplace.settings.agents if by == "model" else None
    views = cost_views(world, by, agents=agents, settings=settings)
    if call.json:
        print_json(views)
    elif views:
        rows = [(str(view[by]), *_cost_row(view)) for view in views]
        table((by.upper(), *HEAD), [*rows, ("total", *_cost_row(total(spenders(world))))], call)
    else:
        narrate(call, "no runs yet, so nothing was spent")


def _cost_row(view: dict[str, Any]) -> tuple[str, ...]:
    price = dollars(view["cost_usd"])
    if price == UNKNOWN and view["known_cost_usd"]:
        price = f"{UNKNOWN} (at least {dollars(view['known_cost_usd'])})"
    tokens = (thousands(view["input_tokens"]), thousands(view["output_tokens"]))
    return (str(view["runs"]), str(view["steps"]), *tokens, price)
