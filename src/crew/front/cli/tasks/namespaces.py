"""The namespaces of the task store: which there are, and how another one is read and listed."""

from typing import TYPE_CHECKING

from crew.domain.kernel.errors import NotFound, UsageError
from crew.domain.world import World
from crew.front.cli.call import Call
from crew.front.cli.output import narrate, print_json, table
from crew.front.cli.tasks.list_tasks import HEAD, Wish, choose, rows
from crew.runner.views.row_views import task_view
from crew.store.fact_log import load_world
from crew.tasks.task_source import open_source

if TYPE_CHECKING:
    from crew.tasks.source_snapshot import Snapshot
    from crew.workplace import Workplace

SOURCE = "files"
"""The one source that has namespaces."""


def namespaces(workplace: "Workplace") -> list[str]:
    """The one in use first, then every other one that is there."""
    own = workplace.settings.tasks.namespace
    if workplace.settings.tasks.source != SOURCE:
        return [own]
    folder = workplace.folder / "tasks"
    there = (
        path.name for path in folder.glob("*/") if not path.is_symlink() and any(path.glob("*.md"))
    )
    return [own, *sorted(name for name in there if name != own)]


def snapshot_of(workplace: "Workplace", name: str) -> "Snapshot":
    """All tasks of a namespace; in the one in use only those that changed are read again.

    The name is checked by the source, so that it cannot lead to another folder.
    """
    tasks = workplace.settings.tasks
    if name == tasks.namespace:
        return workplace.snapshot()
    if tasks.source != SOURCE:
        raise UsageError(f"{tasks.source} has no namespaces", hint="leave --namespace out")
    source = open_source(tasks.source, workplace.root, namespace=name)
    if name not in namespaces(workplace):
        known = ", ".join(namespaces(workplace))
        raise NotFound(f"there is no namespace {name!r}", hint=f"there are: {known}")
    return source.scan()


def list_namespaces(call: Call, workplace: "Workplace", wish: Wish, name: str | None) -> None:
    """The tasks of one namespace, or of all of them."""
    names = namespaces(workplace) if name is None else [name]
    found = {one: snapshot_of(workplace, one).by_id for one in names}
    chosen = {one: choose(wish, items) for one, items in found.items()}
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
