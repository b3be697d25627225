"""The lines of the board in their order: groups by state, by wave or by quest, filtered, sorted."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from crew.domain.rows.task import FINISHED, TaskState
from crew.domain.rows.task_item import QUEST_LABEL, TaskItem, quest_of
from crew.domain.tasks.dependency_waves import waves
from crew.front.tui.board.task_filter import FilterSubject, TaskFilter, parse_filter
from crew.front.tui.board.view_choices import ViewChoices
from crew.front.tui.live.picture import Picture
from crew.tasks.source_snapshot import natural_order


class BoardLine(NamedTuple):
    """A task at some depth of a tree, or a heading without a task."""

    task: str = ""
    depth: int = 0
    title: str = ""
    size: int = 0


STATE_TITLES: Mapping[str, str] = {
    "error": "Error",
    "in_progress": "In progress",
    "done": "Done",
    "todo": "Todo",
    "merged": "Merged",
    "closed": "Closed",
}
"""The groups by state: what needs a person comes first."""

WAVE_TITLES = ("Ready now", "Next", "Later", "Blocked")

Group = tuple[str, Sequence[str]]


def board_lines(picture: Picture, choices: ViewChoices) -> list[BoardLine]:
    """All lines of the board."""
    ids = _chosen(picture, choices)
    if choices.group == "quest":
        return list(_trees(picture, ids))
    groups = _by_wave(picture, ids) if choices.group == "wave" else _by_state(picture, ids)
    lines: list[BoardLine] = []
    for title, tasks in groups:
        if tasks:
            lines.append(BoardLine(title=title, size=len(tasks)))
            lines += [BoardLine(task) for task in tasks]
    return lines


def _chosen(picture: Picture, choices: ViewChoices) -> list[str]:
    """The ids of the tasks to show, sorted."""
    wish = parse_filter(choices.filter)
    ids = [task for task in picture.items if _is_wanted(picture, task, choices, wish)]
    return sorted(ids, key=_SORT_KEYS.get(choices.sort, _SORT_KEYS["id"])(picture))


def _is_wanted(picture: Picture, task: str, choices: ViewChoices, wish: TaskFilter) -> bool:
    if not choices.everything and picture.status_of(task) in FINISHED:
        return any(name == "status" for name, _ in wish.fields) and _matches(picture, task, wish)
    return not wish.text or _matches(picture, task, wish)


def _matches(picture: Picture, task: str, wish: TaskFilter) -> bool:
    item = picture.items[task]
    return wish.matches(
        FilterSubject(
            id=task,
            title=item.title,
            status=picture.status_of(task),
            labels=item.labels,
            agents=tuple(agents_of(picture, item)),
            parent=item.parent or "",
        )
    )


def agents_of(picture: Picture, item: TaskItem) -> Iterator[str]:
    """The agent that has the task and its kind, or else the kind that the task wants."""
    row = picture.world.tasks.get(item.id)
    run = picture.world.runs.get((row.run if row else None) or "")
    if run is not None and run.is_live:
        yield from filter(None, (run.agent, run.agent_kind))
    elif item.agent:
        yield item.agent


SortKey = Callable[[Picture], Callable[[str], Any]]

_SORT_KEYS: Mapping[str, SortKey] = {
    "id": lambda _picture: natural_order,
    "status": lambda picture: (
        lambda task: (list(STATE_TITLES).index(picture.status_of(task)), natural_order(task))
    ),
    "priority": lambda picture: lambda task: (picture.items[task].priority, natural_order(task)),
    "agent": lambda picture: (
        lambda task: (
            next(agents_of(picture, picture.items[task]), "~"),
            natural_order(task),
        )
    ),
    "title": lambda picture: lambda task: picture.items[task].title.casefold(),
    "newest": lambda picture: lambda task: -(picture.items[task].created or 0.0),
}


def _by_state(picture: Picture, ids: Iterable[str]) -> Iterator[Group]:
    groups: dict[str, list[str]] = {state: [] for state in STATE_TITLES}
    for task in ids:
        groups[picture.status_of(task)].append(task)
    for state, tasks in groups.items():
        yield STATE_TITLES[state], tasks


def _by_wave(picture: Picture, ids: Sequence[str]) -> Iterator[Group]:
    """Open tasks by the wave in which they can start; then those that are under way or over."""
    rows = picture.world.tasks
    over = {task for task in picture.items if picture.status_of(task) in FINISHED}
    over |= {task for task, row in rows.items() if row.is_over}
    deps = {task: item.deps for task, item in picture.items.items() if task not in over}
    found, _blocked = waves(deps, finished=over)
    groups: dict[str, list[str]] = {
        title: [] for title in ("Under way", *WAVE_TITLES, "Done", "Over")
    }
    for task in ids:
        groups[_wave_of(picture.status_of(task), found.get(task))].append(task)
    yield from groups.items()


def _wave_of(status: str, wave: int | None) -> str:
    if status == TaskState.IN_PROGRESS:
        return "Under way"
    if status == TaskState.DONE:
        return "Done"
    if status in FINISHED:
        return "Over"
    return "Blocked" if wave is None else WAVE_TITLES[min(wave, 2)]


def _trees(picture: Picture, ids: Sequence[str]) -> Iterator[BoardLine]:
    """Quests with their items and tasks with their children; all others follow by themselves."""
    shown = set(ids)
    children: dict[str, list[str]] = {}
    roots: list[str] = []
    for task in ids:
        above = _above(picture.items[task])
        if above in shown and above != task:
            children.setdefault(above, []).append(task)
        else:
            roots.append(task)
    # Parents that name each other have no root: each is then shown by itself.
    seen: set[str] = set()
    for root in [*roots, *ids]:
        yield from _tree(root, children, seen)


def _tree(root: str, children: Mapping[str, Sequence[str]], seen: set[str]) -> Iterator[BoardLine]:
    todo = [(root, 0)]
    while todo:
        task, depth = todo.pop()
        if task in seen:
            continue
        seen.add(task)
        yield BoardLine(task, depth)
        todo += [(child, depth + 1) for child in reversed(children.get(task, ()))]


def _above(item: TaskItem) -> str:
    """The quest of an item, or the parent of a task."""
    return item.parent or ("" if QUEST_LABEL in item.labels else quest_of(item))
