"""Plans of simulated quests, right and wrong, and the source in which their steps become tasks."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

from crew.domain.kernel.errors import NotFound
from crew.domain.rows.quest import Quest
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import TaskItem
from crew.tasks.task_source import NewTask, TaskChanges

MOST_STEPS = 14

Values = dict[str, object]


def new_plan(chance: random.Random) -> list[Values]:
    """One to ten steps, each of which waits for some of those before it."""
    steps: list[Values] = []
    for number in range(1, chance.choice([1, 2, 3, 4, 6, 10]) + 1):
        steps.append(_step(chance, f"s{number}", [str(one["id"]) for one in steps]))
    return steps


def changed_plan(chance: random.Random, quest: Quest) -> list[Values]:
    """The plan as it is, with steps left out, split in two, told otherwise, put later, or added."""
    steps: list[Values] = []
    known: list[str] = []
    if chance.random() < 0.3:
        known.append(f"f{quest.plan_number}")
        steps.append(_step(chance, known[0], []))
    for step in quest.steps:
        for key in _keys_for(chance, step.key):
            if key in known:
                continue
            kept = [dep for dep in step.deps if dep in known]
            if known and chance.random() < 0.2:
                kept = sorted({*kept, chance.choice(known)})
            steps.append(
                {
                    "id": key,
                    "title": step.title,
                    "description": chance.choice([step.description, "done otherwise"]),
                    "dependencies": kept,
                }
            )
            known.append(key)
    if not steps or chance.random() < 0.3:
        steps.append(_step(chance, f"n{quest.plan_number}", known))
    return steps[:MOST_STEPS]  # nobody waits for one that comes after


def _keys_for(chance: random.Random, key: str) -> tuple[str, ...]:
    """What becomes of a step: mostly itself, sometimes nothing, sometimes two."""
    kind = chance.random()
    if kind < 0.1:
        return ()
    return (f"{key}a", f"{key}b") if kind < 0.2 and len(key) < 6 else (key,)


def _step(chance: random.Random, key: str, before: list[str]) -> Values:
    deps = chance.sample(before, min(len(before), chance.choice([0, 0, 1, 2])))
    return {"id": key, "title": f"step {key}", "dependencies": deps}


def faulty_plans(plan: list[Values]) -> list[object]:
    """The same plan with one thing wrong in it."""
    first, rest = plan[0], plan[1:]
    return [
        [],
        "a plan",
        [first, *plan],
        [{**first, "dependencies": ["nobody"]}, *rest],
        [{**first, "dependencies": [first["id"]]}, *rest],
        [{**first, "id": "../up"}, *rest],
        [{**first, "title": ""}, *rest],
        [{**first, "priority": 1}, *rest],
        [{**first, "dependencies": "s1"}, *rest],
        [*plan, *({**first, "id": f"x{n}"} for n in range(60))],
    ]


@dataclass(slots=True)
class Store:
    """The task source of a simulated crew: its items and their status outlive the runner."""

    items: dict[str, TaskItem] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    away: set[str] = field(default_factory=set)

    def all(self) -> list[TaskItem]:
        hidden = self.removed | self.away
        return [self.item(task) for task in self.items if task not in hidden]

    def item(self, task: str) -> TaskItem:
        if task in self.removed | self.away:
            raise NotFound(f"there is no task {task}", hint="it was removed")
        return replace(self.items[task], status=TaskState(self.status[task]))

    def remove(self, task: str) -> None:
        """By hand: whatever else was to be said of it finds nothing."""
        if self.items[task].labels:  # one of a quest's
            self.removed.add(task)

    def switch_branch(self) -> None:
        """Another one is checked out, which has none of the files that quests have now."""
        self.away = {task for task, item in self.items.items() if item.labels}

    def switch_back(self) -> None:
        self.away = set()


@dataclass(frozen=True, slots=True)
class Source:
    """One life's way to the store: the runner may die before and after every change."""

    store: Store
    maybe_die: Callable[[], None]

    def scan(self, _previous: object = None) -> SimpleNamespace:
        return SimpleNamespace(items=self.store.all())

    def show(self, task: str) -> TaskItem:
        return self.store.item(task)

    def add(self, new: NewTask, *, at: float) -> str:
        made = str(len(self.store.items) + 1)
        item = TaskItem(
            id=made,
            title=new.title,
            body=new.body,
            labels=new.labels,
            parent=new.parent,
            deps=new.deps,
            base=new.base,
        )
        self._put(item)
        return made

    def edit(self, task: str, changes: TaskChanges) -> None:
        self._put(replace(self.store.item(task), title=changes.title, body=changes.body))

    def add_dep(self, task: str, dep: str) -> None:
        item = self.store.item(task)
        self._put(replace(item, deps=(*item.deps, dep)))

    def remove_dep(self, task: str, dep: str) -> None:
        item = self.store.item(task)
        self._put(replace(item, deps=_without(item.deps, dep)))

    def _put(self, item: TaskItem) -> None:
        self.maybe_die()
        self.store.items[item.id] = item
        self.store.status.setdefault(item.id, str(TaskState.TODO))
        self.maybe_die()


def _without(deps: Iterable[str], dep: str) -> tuple[str, ...]:
    return tuple(one for one in deps if one != dep)
