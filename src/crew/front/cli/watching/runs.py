"""`crew runs`: lists the runs of one task or of all tasks."""

from typing import TYPE_CHECKING, Any

from crew.domain.rows.run import Run
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import dollars, narrate, print_json, table, thousands
from crew.front.cli.params import task_argument
from crew.runner.views.row_views import run_view
from crew.store.fact_log import load_world

if TYPE_CHECKING:
    from crew.workplace import Workplace


HEAD = ("RUN", "STATE", "KIND", "ROUND", "STEPS", "TOKENS", "COST", "STARTED", "ERROR")


@command("runs", example="crew runs\ncrew runs 12 --json")
@task_argument(required=False)
@pass_call
def runs(call: Call, task: str | None) -> None:
    """List the runs of one task or of all tasks."""
    workplace = call.workplace()
    wanted = workplace.source.resolve(task) if task else None
    found = [run_view(run) for run in all_runs(workplace) if wanted in (None, run.task)]
    if call.json:
        print_json(found)
    elif found:
        table(HEAD, [_run_row(run) for run in found], call)
    else:
        narrate(call, "no runs yet")


def all_runs(workplace: "Workplace") -> list[Run]:
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
