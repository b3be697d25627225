"""`crew list --namespace`: lists the tasks of another namespace, or of all."""

from typing import TYPE_CHECKING

from crew.domain.world import World
from crew.front.cli.call import Call
from crew.front.cli.output import narrate, print_json, table
from crew.front.cli.tasks.list_tasks import HEAD, Wish, choose, could_start, rows
from crew.runner.views.row_views import task_view
from crew.runner.views.task_namespaces import namespaces, snapshot_of
from crew.store.fact_log import load_world

if TYPE_CHECKING:
    from crew.workplace import Workplace


def list_namespaces(call: Call, workplace: "Workplace", wish: Wish, name: str | None) -> None:
    """List the tasks of one namespace, or of all of them."""
    names = namespaces(workplace) if name is None else [name]
    found = {one: snapshot_of(workplace, one).by_id for one in names}
    ready = {one: could_start(workplace, one) if wish.ready else None for one in names}
    chosen = {one: choose(wish, items, ready[one]) for one, items in found.items()}
    if call.json:
        worlds = {workplace.settings.tasks.namespace: load_world(workplace.db)}
        print_json(
            [
                {"namespace": one, **task_view(found[one][task], worlds.get(one, World()))}
                for one, tasks in chosen.items()
                for task in tasks
            ]
        )
    elif any(chosen.values()):
        lines = [(one, *row) for one in names for row in rows(chosen[one], found[one], {})]
        table(("NAMESPACE", *HEAD), lines, call)
    else:
        narrate(call, f"no such task in {', '.join(names)}: `-a` shows finished ones too")
