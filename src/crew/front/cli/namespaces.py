"""The namespaces of the task store: which there are, and how another one is read."""

from typing import TYPE_CHECKING

from crew.domain.errors import NotFound, UsageError
from crew.tasks.source import TaskSource, open_source

if TYPE_CHECKING:
    from crew.runner.workplace import Workplace

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


def open_namespace(workplace: "Workplace", name: str) -> TaskSource:
    """Its name is checked by the source, so that it cannot lead to another folder."""
    tasks = workplace.settings.tasks
    if name == tasks.namespace:
        return workplace.source
    if tasks.source != SOURCE:
        raise UsageError(f"{tasks.source} has no namespaces", hint="leave --namespace out")
    source = open_source(tasks.source, workplace.root, namespace=name)
    if name not in namespaces(workplace):
        known = ", ".join(namespaces(workplace))
        raise NotFound(f"there is no namespace {name!r}", hint=f"there are: {known}")
    return source
