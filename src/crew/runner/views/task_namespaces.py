"""Lists the namespaces of the task store, and reads the tasks of another one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import NotFound, UsageError
from crew.tasks.task_source import open_source

if TYPE_CHECKING:
    from crew.domain.rows.task_item import TaskItem
    from crew.tasks.source_snapshot import Snapshot
    from crew.workplace import Workplace

SOURCE = "files"
"""The one task source that has namespaces."""


def namespaces(workplace: "Workplace") -> list[str]:
    """The namespace in use first, then every other one."""
    own = workplace.settings.tasks.namespace
    if workplace.settings.tasks.source != SOURCE:
        return [own]
    folder = workplace.folder / "tasks"
    there = (
        path.name for path in folder.glob("*/") if not path.is_symlink() and any(path.glob("*.md"))
    )
    return [own, *sorted(name for name in there if name != own)]


def snapshot_of(workplace: "Workplace", name: str) -> "Snapshot":
    """All tasks of a namespace; in the one in use, only changed ones are read again.

    The source checks the name, so that it cannot lead to another folder.
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


def all_items(workplace: "Workplace") -> Iterator["TaskItem"]:
    """The tasks of every namespace."""
    for name in namespaces(workplace):
        yield from snapshot_of(workplace, name).items
