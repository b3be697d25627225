"""The lines of the board in their order: groups by state, by wave or by quest, filtered, sorted."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from crew.domain.rows.quest import QuestState
from crew.domain.rows.task import FINISHED, TaskState
from crew.domain.rows.task_item import QUEST_LABEL, TaskItem
from crew.domain.tasks.dependency_waves import waves
from crew.front.tui.board.task_columns import TaskColumns, agents_by_task, column, columns_of
from crew.front.tui.board.task_filter import FilterSubject, TaskFilter, parse_filter
from crew.front.tui.board.view_choices import ViewChoices
from crew.front.tui.live.picture import Picture


class BoardLine(NamedTuple):
    """A task at some depth of a tree, a heading, or an item of a plan that is no task yet."""

    task: str = ""
    depth: int = 0
    title: str = ""
    size: int = 0
    quest: str = ""


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
    columns = columns_of(picture)
    ids = _chosen(picture, choices, columns)
    if choices.group == "quest":
        return _trees(picture, ids)
    groups = _by_wave(picture, ids, columns) if choices.group == "wave" else _by_state(ids, columns)
    lines: list[BoardLine] = []
    for title, tasks in groups:
        if tasks:
            lines.append(BoardLine(title=title, size=len(tasks)))
            lines += [BoardLine(task) for task in tasks]
    return lines


def _chosen(picture: Picture, choices: ViewChoices, columns: TaskColumns) -> list[str]:
    """The ids of the tasks to show, sorted."""
    wish = parse_filter(choices.filter)
    wants_all = choices.everything or any(name == "status" for name, _ in wish.fields)
    finished = frozenset() if wants_all else FINISHED
    kept = _of_open_quests(picture) if choices.group == "quest" else frozenset()
    ids = [task for task, state in columns.status.items() if state not in finished or task in kept]
    if wish.text:
        ids = _matching(picture, ids, wish, columns)
    if (key := _sort_key(choices.sort, picture, columns)) is not None:
        ids.sort(key=key)
    return ids


def _of_open_quests(picture: Picture) -> frozenset[str]:
    """The tasks of quests that are under way, which are shown with all their items."""
    quests = picture.world.quests
    return frozenset(
        position.task
        for position in picture.world.positions.values()
        if position.quest in quests and quests[position.quest].state == QuestState.OPEN
    )


def _matching(
    picture: Picture, ids: Iterable[str], wish: TaskFilter, columns: TaskColumns
) -> list[str]:
    titles = column(picture.items, "title")
    labels = column(picture.items, "labels")
    parents = column(picture.items, "parent")
    agents = _agents(picture)
    return [
        task
        for task in ids
        if wish.matches(
            FilterSubject(
                id=task,
                title=titles[task],
                status=columns.status[task],
                labels=tuple(labels[task]),
                agents=tuple(agents[task].split("/")) if agents[task] else (),
                parent=parents[task] or "",
            )
        )
    ]


def _agents(picture: Picture) -> dict[str, str]:
    """The agent that has each task and its kind, or else the kind that the task wants."""
    wanted = column(picture.items, "agent")
    live = agents_by_task(picture.world.runs, picture.world.tasks)
    return {task: live.get(task) or agent or "" for task, agent in wanted.items()}


def agents_of(picture: Picture, item: TaskItem) -> Iterator[str]:
    """The agent that has the task and its kind, or else the kind that the task wants."""
    live = agents_by_task(picture.world.runs, picture.world.tasks).get(item.id)
    yield from (live or item.agent or "").split("/") if live or item.agent else ()


SortKey = Callable[[str], Any]


def _sort_key(name: str, picture: Picture, columns: TaskColumns) -> SortKey | None:
    """What to sort by; the tasks come in the order of their ids, which a sort keeps."""
    if name == "status":
        places = {state: place for place, state in enumerate(STATE_TITLES)}
        return lambda task: places[columns.status[task]]
    if name == "priority":
        return column(picture.items, "priority").__getitem__
    if name == "agent":
        agents = _agents(picture)
        return lambda task: agents[task] or "~"
    if name == "title":
        titles = column(picture.items, "title")
        return lambda task: titles[task].casefold()
    if name == "newest":
        created = column(picture.items, "created")
        return lambda task: -(created[task] or 0.0)
    return None


def _by_state(ids: Iterable[str], columns: TaskColumns) -> Iterator[Group]:
    groups: dict[str, list[str]] = {state: [] for state in STATE_TITLES}
    for task in ids:
        groups[columns.status[task]].append(task)
    for state, tasks in groups.items():
        yield STATE_TITLES[state], tasks


def _by_wave(picture: Picture, ids: Sequence[str], columns: TaskColumns) -> Iterator[Group]:
    """Open tasks by the wave in which they can start; then those that are under way or over."""
    over = columns.over
    deps = {t: of for t, of in column(picture.items, "deps").items() if t not in over}
    found, _blocked = waves(deps, finished=over)
    groups: dict[str, list[str]] = {
        title: [] for title in ("Under way", *WAVE_TITLES, "Done", "Over")
    }
    for task in ids:
        groups[_wave_of(columns.status[task], found.get(task))].append(task)
    yield from groups.items()


def _wave_of(status: str, wave: int | None) -> str:
    if status == TaskState.IN_PROGRESS:
        return "Under way"
    if status == TaskState.DONE:
        return "Done"
    if status in FINISHED:
        return "Over"
    return "Blocked" if wave is None else WAVE_TITLES[min(wave, 2)]


def _trees(picture: Picture, ids: Sequence[str]) -> list[BoardLine]:
    """Quests with their items and tasks with their children; all others follow by themselves."""
    shown = set(ids)
    labels, parents = column(picture.items, "labels"), column(picture.items, "parent")
    children: dict[str, list[str]] = {}
    roots: list[str] = []
    for task in ids:
        above = parents[task] or _quest_above(labels[task])
        if above in shown and above != task:
            children.setdefault(above, []).append(task)
        else:
            roots.append(task)
    seen: set[str] = set()
    quests = [task for task in roots if QUEST_LABEL in labels[task]]
    in_quests = [line for root in quests for line in _quest_tree(picture, root, children, seen)]
    # Parents that name each other have no root: each is then shown by itself.
    others = [line for root in [*roots, *ids] for line in _tree(root, children, seen)]
    if not quests:
        return others
    heads = (
        BoardLine(title="Quests", size=len(quests)),
        BoardLine(title="Other tasks", size=len(others)),
    )
    return [heads[0], *in_quests, *([heads[1], *others] if others else ())]


def _quest_tree(
    picture: Picture, root: str, children: Mapping[str, Sequence[str]], seen: set[str]
) -> Iterator[BoardLine]:
    """A quest, its tasks, and the items of its plan that are no tasks yet."""
    yield from _tree(root, children, seen)
    quest = picture.world.quests.get(root)
    for item in quest.steps if quest else ():
        if not item.task:
            yield BoardLine(depth=1, title=item.title, quest=root)


def _tree(root: str, children: Mapping[str, Sequence[str]], seen: set[str]) -> Iterator[BoardLine]:
    todo = [(root, 0)]
    while todo:
        task, depth = todo.pop()
        if task in seen:
            continue
        seen.add(task)
        yield BoardLine(task, depth)
        todo += [(child, depth + 1) for child in reversed(children.get(task, ()))]


def _quest_above(labels: Iterable[str]) -> str:
    """The quest of an item; a quest itself is below none."""
    for label in labels:
        if label == QUEST_LABEL:
            return ""
        if label.startswith(f"{QUEST_LABEL}-"):
            return label.removeprefix(f"{QUEST_LABEL}-")
    return ""
