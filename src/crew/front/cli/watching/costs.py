"""`crew runs` and `crew cost`: the tries, and what they used."""

from typing import TYPE_CHECKING, Any

import click

from crew.domain.rows.channel import Member
from crew.domain.rows.run import Run
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import UNKNOWN, dollars, narrate, print_json, table, thousands
from crew.front.cli.params import task_argument
from crew.runner.views.row_views import moment, run_view, total
from crew.store.fact_log import facts_after, load_world

if TYPE_CHECKING:
    from crew.workplace import Workplace

Spender = Run | Member
"""Whatever uses tokens: a try at a task, or somebody who speaks in a channel."""

RUNS_HEAD = ("RUN", "STATE", "KIND", "ROUND", "STEPS", "TOKENS", "COST", "STARTED", "ERROR")
COST_HEAD = ("RUNS", "STEPS", "INPUT", "OUTPUT", "COST")


@command("runs", example="crew runs\ncrew runs 12 --json")
@task_argument(required=False)
@pass_call
def runs(call: Call, task: str | None) -> None:
    """List the tries at a task, or at all tasks."""
    workplace = call.workplace()
    wanted = workplace.source.resolve(task) if task else None
    found = [run_view(run) for run in _runs(workplace) if wanted in (None, run.task)]
    if call.json:
        print_json(found)
    elif found:
        table(RUNS_HEAD, [_run_row(run) for run in found], call)
    else:
        narrate(call, "no runs yet")


def _runs(workplace: "Workplace") -> list[Run]:
    return sorted(load_world(workplace.db).runs.values(), key=lambda run: (run.started_at, run.id))


def _run_row(run: dict[str, Any]) -> tuple[str, ...]:
    return (
        run["id"],
        run["state"],
        run["kind"],
        f"{run['round']}/{run['max_rounds']}",
        str(run["steps"]),
        thousands(run["input_tokens"] + run["output_tokens"]),
        dollars(run["cost_usd"]),
        run["started"] or "-",
        run["error"] or "",
    )


@command("cost", example="crew cost\ncrew cost --by day --json")
@click.option(
    "--by", type=click.Choice(["task", "agent", "day", "model"]), default="task", help="task"
)
@pass_call
def cost(call: Call, by: str) -> None:
    """Add up tokens and dollars.

    A cost that nobody knows is shown as unknown, never as 0.
    """
    workplace = call.workplace()
    found: list[Spender] = [*_runs(workplace), *_speakers(workplace)]
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
        table((by.upper(), *COST_HEAD), [*rows, ("total", *_cost_row(total(found)))], call)
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
    """A conversation counts for the day on which it began."""
    channels = load_world(workplace.db).channels

    def day(one: Spender) -> str:
        began = one.started_at if isinstance(one, Run) else channels[one.channel].opened_at
        return str(moment(began))[:10]

    return day


def _by_agent(workplace: "Workplace") -> Any:
    """A run forgets its agent when it is over; the facts remember who had it last."""
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
