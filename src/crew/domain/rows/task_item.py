"""A task as it is read from its source, and the rules of its dependencies."""

from collections.abc import Collection, Iterable, Mapping

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import FINISHED, TaskState
from crew.domain.rows.terms import Terms

DEFAULT_PRIORITY = 2


@frozen
class Comment:
    """A comment on a task; `index` is its place, `kind` the source's own word for it."""

    index: int
    author: str = ""
    kind: str = ""
    text: str
    at: float | None = None
    key: str = ""  # given by the writer, so that a repeat adds nothing


@frozen
class TaskItem:
    """One task of a source; `corrupt` is why it cannot be read, and such a task never starts."""

    id: str
    title: str
    body: str = ""
    status: TaskState = TaskState.TODO
    priority: int = DEFAULT_PRIORITY  # 0 is the most urgent, 4 the least
    labels: tuple[str, ...] = ()
    parent: str | None = None
    deps: tuple[str, ...] = ()
    agent: str | None = None
    base: str | None = None
    issue: int | None = None
    created: float | None = None
    started: float | None = None
    review_count: int = 0
    skip_review: bool | None = None  # None leaves it to the config
    terms: Terms = ()
    comments: tuple[Comment, ...] = ()
    corrupt: str | None = None


QUEST_LABEL = "quest"
"""The label of a task that holds a quest's request; its items have `quest-<id>`."""


def quest_of(item: TaskItem) -> str:
    """The quest that a task's labels name; empty if none."""
    for label in item.labels:
        if label == QUEST_LABEL:
            return item.id
        if label.startswith(f"{QUEST_LABEL}-"):
            return label.removeprefix(f"{QUEST_LABEL}-")
    return ""


def blockers(
    item: TaskItem, by_id: Mapping[str, TaskItem], landed: Collection[str] = ()
) -> tuple[str, ...]:
    """The dependencies that still hold the task back, unknown ids included.

    `landed` are tasks that only wait for their delivery; their files do not show that.
    """
    held = (dep for dep in item.deps if not _is_finished(by_id.get(dep)))
    return tuple(dep for dep in held if dep not in landed)


def _is_finished(item: TaskItem | None) -> bool:
    return item is not None and item.corrupt is None and item.status in FINISHED


def dependency_cycles(items: Iterable[TaskItem]) -> tuple[tuple[str, ...], ...]:
    """Every cycle once, each starting at its smallest id: `("1", "4", "2")` is 1 → 4 → 2 → 1.

    Each back edge gives one cycle, which is enough to break all of them one after the other.
    """
    deps = {item.id: item.deps for item in items}
    found: dict[tuple[str, ...], None] = {}
    finished: set[str] = set()
    for start in deps:
        for cycle in _cycles_from(start, deps, finished):
            found[_from_smallest(cycle)] = None
    return tuple(sorted(found))


def _cycles_from(
    start: str, deps: Mapping[str, tuple[str, ...]], finished: set[str]
) -> list[tuple[str, ...]]:
    """Search depth first without recursion, since a chain may be thousands of tasks long."""
    cycles: list[tuple[str, ...]] = []
    path: dict[str, None] = {}
    todo: list[tuple[str, bool]] = [(start, False)]
    while todo:
        task, is_left = todo.pop()
        if is_left:
            del path[task]
            finished.add(task)
        elif task in path:
            way = list(path)
            cycles.append(tuple(way[way.index(task) :]))
        elif task not in finished:
            path[task] = None
            todo.append((task, True))
            todo += [(dep, False) for dep in deps.get(task, ())]
    return cycles


def _from_smallest(cycle: tuple[str, ...]) -> tuple[str, ...]:
    at = cycle.index(min(cycle))
    return cycle[at:] + cycle[:at]


def cycle_through(items: Iterable[TaskItem], *, task: str, new_dep: str) -> tuple[str, ...] | None:
    """The cycle that `task` depending on `new_dep` would close, from `task` on, or None."""
    deps = {item.id: item.deps for item in items}
    came_from: dict[str, str] = {new_dep: task}
    todo = [new_dep]
    while todo:
        current = todo.pop()
        if current == task:
            return _way_to(task, came_from)
        for dep in deps.get(current, ()):
            if dep not in came_from:
                came_from[dep] = current
                todo.append(dep)
    return None


def _way_to(task: str, came_from: Mapping[str, str]) -> tuple[str, ...]:
    way = [task]
    step = came_from[task]
    while step != task:
        way.append(step)
        step = came_from[step]
    return (task, *reversed(way[1:]))
