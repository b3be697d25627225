"""`crew cost`: adds up the tokens and dollars of runs and channels."""

from typing import TYPE_CHECKING, Any

import click

from crew.domain.rows.channel import Member
from crew.domain.rows.run import Run
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import UNKNOWN, dollars, narrate, print_json, table, thousands
from crew.front.cli.watching.runs import all_runs
from crew.runner.views.row_views import moment, total
from crew.store.fact_log import facts_after, load_world

if TYPE_CHECKING:
    from crew.workplace import Workplace


Spender = Run | Member
"""A row that uses tokens: a run, or a member of a channel."""


HEAD = ("RUNS", "STEPS", "INPUT", "OUTPUT", "COST")


@command("cost", example="crew cost\ncrew cost --by day --json")
@click.option(
    "--by", type=click.Choice(["task", "agent", "day", "model"]), default="task", help="task"
)
@pass_call
def cost(call: Call, by: str) -> None:
    """Add up tokens and dollars.

    An unknown cost is shown as unknown, never as 0.
    """
    workplace = call.workplace()
    found: list[Spender] = [*all_runs(workplace), *_speakers(workplace)]
    key = {
        "task": _task,
        "day": _by_day(workplace),
        "agent": _by_agent(workplace),
        "model": _by_model(workplace),
    }[by]
    groups: dict[str, list[Spender]] = {}
    for run in found:
        groups.setdefault(key(run), []).append(run)
    views = [{by: name, **total(group)} for name, group in groups.items()]
    if call.json:
        print_json(views)
    elif views:
        rows = [(str(view[by]), *_cost_row(view)) for view in views]
        table((by.upper(), *HEAD), [*rows, ("total", *_cost_row(total(found)))], call)
    else:
        narrate(call, "no runs yet, so nothing was spent")


def _speakers(workplace: "Workplace") -> list[Member]:
    """The members of channels that crew has called."""
    return [one for one in load_world(workplace.db).members.values() if one.steps]


def _cost_row(view: dict[str, Any]) -> tuple[str, ...]:
    price = dollars(view["cost_usd"])
    if price == UNKNOWN and view["known_cost_usd"]:
        price = f"{UNKNOWN} (at least {dollars(view['known_cost_usd'])})"
    tokens = (thousands(view["input_tokens"]), thousands(view["output_tokens"]))
    return (str(view["runs"]), str(view["steps"]), *tokens, price)


def _task(one: Spender) -> str:
    return one.task if isinstance(one, Run) else f"channel {one.channel}"


def _by_day(workplace: "Workplace") -> Any:
    """Costs by day; a conversation counts for the day on which it began."""
    channels = load_world(workplace.db).channels

    def day(one: Spender) -> str:
        began = one.started_at if isinstance(one, Run) else channels[one.channel].opened_at
        return str(moment(began))[:10]

    return day


def _by_agent(workplace: "Workplace") -> Any:
    """Costs by agent; a finished run has no agent, so the facts tell which had it last."""
    names = {
        fact.subject: fact.changes["agent"]
        for _, fact in facts_after(workplace.db)
        if fact.kind == "run" and fact.changes.get("agent")
    }
    return lambda one: one.name if isinstance(one, Member) else names.get(one.id, "-")


def _by_model(workplace: "Workplace") -> Any:
    def model(run: Spender) -> str:
        settings = workplace.settings.agents.by_name.get(run.agent_kind)
        return (settings.default_model if settings else None) or f"{run.agent_kind} (its default)"

    return model
