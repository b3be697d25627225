"""The interface of all task sources, and how to open one by its name."""

import importlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from crew.domain.kernel.errors import NotFound, UsageError
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import task_id
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import DEFAULT_PRIORITY, TaskItem
from crew.domain.rows.terms import Terms
from crew.tasks.source_snapshot import Snapshot

GROUP = "crew.task_sources"
"""The entry point group in which other packages register their sources."""

BUILT_IN = {"files": "crew.tasks.files_source:FilesSource", "tk": "crew.tasks.tk_source:TkSource"}
"""Known without a scan of entry points, which would take a third of a command's start."""


@frozen
class NewTask:
    """A task to create. The source assigns its id."""

    title: str
    body: str = ""
    priority: int = DEFAULT_PRIORITY
    labels: tuple[str, ...] = ()
    parent: str | None = None
    deps: tuple[str, ...] = ()
    agent: str | None = None
    base: str | None = None
    issue: int | None = None
    skip_review: bool | None = None
    terms: Terms = ()


@frozen
class TaskChanges:
    """The changes of `edit`. None keeps a field; an empty text, or 0 for the issue, clears it.

    With `only_if`, nothing is changed unless the task has one of these states at that moment.
    """

    title: str | None = None
    body: str | None = None
    priority: int | None = None
    labels: tuple[str, ...] | None = None
    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    parent: str | None = None
    agent: str | None = None
    base: str | None = None
    issue: int | None = None
    skip_review: bool | None = None
    only_if: frozenset[TaskState] = frozenset()


@frozen
class Lifecycle:
    """Optional details of a status. None keeps a field, an empty text clears it."""

    agent: str | None = None
    session: str | None = None
    review_count: int | None = None


UNCHANGED = Lifecycle()


@frozen
class NewComment:
    """A comment for a task. With a `key`, adding it again changes nothing."""

    author: str
    text: str
    at: float
    kind: str = ""
    tags: tuple[str, ...] = ()
    key: str = ""


@runtime_checkable
class TaskSource(Protocol):
    """A source of tasks. Every change is atomic and safe to repeat."""

    def ensure(self) -> None:
        """Create the store if it is missing and repair it if possible. Safe to repeat."""

    def stamp(self) -> object:
        """A value that differs (`!=`) once anything in the source has changed."""

    def scan(self, previous: Snapshot | None = None) -> Snapshot:
        """All tasks. Tasks that are unchanged since `previous` are not read again."""

    def show(self, task: str) -> TaskItem:
        """One task, read now."""

    def resolve(self, prefix: str) -> str:
        """The full id for an id or a unique prefix of one."""

    def add(self, new: NewTask, *, at: float) -> str:
        """Create a task with everything that `new` holds, atomically, and return its id."""

    def edit(self, task: str, changes: TaskChanges) -> None: ...

    def set_status(
        self, task: str, status: TaskState, *, at: float, lifecycle: Lifecycle = UNCHANGED
    ) -> None: ...

    def comment(self, task: str, comment: NewComment) -> None: ...

    def change_comment(self, task: str, index: int, text: str) -> None:
        """Replace the text of a comment. Its author and time stay."""

    def add_dep(self, task: str, dep: str) -> None: ...

    def remove_dep(self, task: str, dep: str) -> None: ...

    def remove(self, task: str) -> None: ...


@runtime_checkable
class BatchSource(Protocol):
    """A source that can create many tasks at once, all or none."""

    def add_all(
        self, count: int, make: Callable[[Sequence[str]], Sequence[NewTask]], *, at: float
    ) -> list[str]:
        """Create that many tasks. `make` gets their ids, so that tasks can name each other."""


@runtime_checkable
class RestorableSource(Protocol):
    """A source whose files crew can write again after somebody deleted all of them."""

    def bring_back(self, items: Iterable[TaskItem], *, last_id: str) -> list[str]:
        """Write the missing ones of these tasks under their ids, and return these.

        `last_id` is the newest id that was ever given: no other task gets it again.
        """


def open_source(name: str, repo_root: Path, *, namespace: str = "default") -> TaskSource:
    """Open the source called `name` for this repository. Opening creates nothing."""
    make = _load(BUILT_IN[name]) if name in BUILT_IN else _load_plugin(name)
    return cast("TaskSource", make(repo_root, namespace=namespace))  # type: ignore[operator]


def _load(target: str) -> object:
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _load_plugin(name: str) -> object:
    # Slow to import, and only needed for sources of other packages.
    from importlib.metadata import entry_points  # noqa: PLC0415

    offered = {point.name: point for point in entry_points(group=GROUP)}
    if name not in offered:
        raise UsageError(
            f"no task source is called {name!r}",
            hint=f"set [tasks] source to one of: {', '.join(sorted({*BUILT_IN, *offered}))}",
        )
    return offered[name].load()


def resolve_id(prefix: str, ids: Iterable[str]) -> str:
    """The id that `prefix` means. An exact match wins over longer ids with this prefix."""
    bare = task_id(prefix)
    known = list(ids)
    if bare in known:
        return bare
    matches = [task for task in known if task.startswith(bare)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(
            f"{prefix!r} could be any of {len(matches)} tasks",
            hint=f"write more of the id: {', '.join(matches[:10])}",
        )
    raise unknown_task(prefix, known)


def unknown_task(task: str, known: Iterable[str]) -> NotFound:
    import difflib  # noqa: PLC0415 - only mistakes pay for it

    near = difflib.get_close_matches(task, list(known), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "`crew list -a` shows all tasks"
    return NotFound(f"there is no task {task!r}", hint=hint)
