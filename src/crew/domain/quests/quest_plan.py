"""The plan of a quest: parse it, find its faults, replace it, and turn its items into tasks."""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from crew.domain.kernel.errors import UsageError
from crew.domain.kernel.fact import Fact
from crew.domain.quests.item_tasks import step_text
from crew.domain.quests.position import stage_named, workflow_of
from crew.domain.rows.quest import PlanItem, Quest, QuestState
from crew.domain.rows.task import FINISHED, Task, TaskState
from crew.domain.rows.task_item import TaskItem, dependency_cycles
from crew.domain.rows.workflow import Does
from crew.domain.runs.run_ends import abandoned
from crew.domain.world import World, moved, noted

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_KNOWN = frozenset({"id", "title", "description", "dependencies", "files", "acceptance"})
LONGEST = 20_000
"""Characters of one text of an item."""

EXAMPLE = (
    '[{"id": "parser", "title": "...", "description": "...", "dependencies": [], '
    '"files": ["src/parser.py"], "acceptance": "..."}]'
)


def planners(world: World, quest: Quest) -> tuple[str, ...]:
    base = world.positions[quest.id]
    stages = workflow_of(world, base).stages
    return tuple(role for stage in stages if stage.plans for role in stage.roles)


def read_steps(values: object) -> tuple[PlanItem, ...]:
    """Parse items from plain values; an error names what is wrong and how to fix it."""
    if not isinstance(values, list | tuple) or not values:
        raise UsageError(
            "steps must be a list with at least one item",
            hint=f"such as {EXAMPLE}",
            code="invalid_plan",
        )
    return tuple(_step(number, one) for number, one in enumerate(values, start=1))


def _step(number: int, value: object) -> PlanItem:
    if not isinstance(value, Mapping):
        raise UsageError(
            f"item {number} is not an object", hint=f"such as {EXAMPLE}", code="invalid_plan"
        )
    if unknown := sorted(set(value) - _KNOWN):
        raise UsageError(
            f"item {number} has unknown fields: {', '.join(unknown)}",
            hint=f"known: {', '.join(sorted(_KNOWN))}",
            code="invalid_plan",
        )
    return PlanItem(
        key=_text(number, value, "id"),
        title=_text(number, value, "title"),
        description=_text(number, value, "description"),
        deps=_texts(number, value, "dependencies"),
        files=_texts(number, value, "files"),
        acceptance=_text(number, value, "acceptance"),
    )


def _text(number: int, value: Mapping[str, object], name: str) -> str:
    text = value.get(name, "")
    if _is_number(text):
        text = str(text)
    if not isinstance(text, str) or len(text) > LONGEST:
        raise UsageError(
            f"{name} of item {number} must be a text of at most {LONGEST:,} characters",
            hint="hand in the whole plan again; nothing was changed",
            code="invalid_plan",
        )
    return text.strip()


def _texts(number: int, value: Mapping[str, object], name: str) -> tuple[str, ...]:
    texts = value.get(name, ())
    if not isinstance(texts, list | tuple) or not all(
        isinstance(text, str) or _is_number(text) for text in texts
    ):
        raise UsageError(
            f"{name} of item {number} must be a list of texts",
            hint="hand in the whole plan again; nothing was changed",
            code="invalid_plan",
        )
    return tuple(dict.fromkeys(str(text).strip() for text in texts))


def _is_number(value: object) -> bool:
    """Whether this is an integer; Python counts True as one."""
    return isinstance(value, int) and not isinstance(value, bool)


def faults(
    steps: tuple[PlanItem, ...], *, most: int, finished: Collection[str] = ()
) -> Iterator[str]:
    """Everything that is wrong with a plan, each fault with its item.

    An item may depend on a `finished` one, whether the plan still names that or not. A plan that is
    too long is not checked further, to save the runner's time.
    """
    if len(steps) > most:
        yield f"{len(steps)} items are too many; the limit is {most}"
        return
    keys = [step.key for step in steps]
    for key, times in sorted(Counter(keys).items()):
        if times > 1:
            yield f"the id {key!r} is used {times} times"
    for step in steps:
        yield from _step_faults(step, {*keys, *finished})
    items = [TaskItem(id=step.key, title="", deps=step.deps) for step in steps]
    for cycle in dependency_cycles(items):
        yield f"items wait for each other in a cycle: {' → '.join((*cycle, cycle[0]))}"


def _step_faults(step: PlanItem, known: Collection[str]) -> Iterator[str]:
    if _KEY.fullmatch(step.key) is None:
        yield f"{step.key!r} cannot be an id: letters, digits, - and _, at most 40"
    if not step.title or "\n" in step.title:
        yield f"item {step.key} needs a title of one line"
    if len(step_text(step)) > 4 * LONGEST:
        yield f"the texts of item {step.key} are longer than {4 * LONGEST:,} characters together"
    for dep in step.deps:
        if dep not in known:
            yield f"item {step.key} waits for {dep!r}, which is not in the plan"


def replaced(
    world: World, quest: Quest, steps: tuple[PlanItem, ...], *, planned_in: str, at: float
) -> tuple[list[Fact], list[str]]:
    """The new plan; finished items stay, and the tasks of dropped items are closed.

    The planner may act in the task of a dropped item, `planned_in`. That one is given up when the
    planner has ended its part.
    """
    before = {step.key: step for step in quest.steps}
    kept = finished_steps(world, quest)
    wanted = {step.key: _with_task(before.get(step.key), step) for step in steps}
    merged = {key: before[key] for key in kept} | {
        key: step for key, step in wanted.items() if key not in kept
    }
    order = [*(key for key in kept if key not in wanted), *wanted]
    plan = tuple(tuple(merged[key]) for key in order)
    planned = noted(quest, "planned", at=at, plan=plan, plan_number=quest.plan_number + 1)
    dropped = [
        step for key, step in before.items() if key not in merged and step.task != planned_in
    ]
    return [planned, *(fact for step in dropped for fact in _dropped(world, step, at=at))], kept


def finished_steps(world: World, quest: Quest) -> list[str]:
    return [step.key for step in quest.steps if _is_finished(world, step)]


def _is_finished(world: World, step: PlanItem) -> bool:
    """Whether the item is merged into the quest's branch, closed, or done and waiting to merge."""
    task = world.tasks.get(step.task)
    return task is not None and task.state in {*FINISHED, TaskState.DONE}


def _with_task(before: PlanItem | None, step: PlanItem) -> PlanItem:
    if before is None:
        return step
    same = before._replace(task="", told=False) == step
    return step._replace(task=before.task, told=before.told and same)


def _dropped(world: World, step: PlanItem, *, at: float) -> list[Fact]:
    task = world.tasks.get(step.task)
    return [] if task is None or task.is_over else left_out(world, task, at=at)


def left_out(world: World, task: Task, *, at: float) -> list[Fact]:
    """Give up the task of an item that the plan does not have any more."""
    closed = moved(
        task, "closed", to=TaskState.CLOSED, at=at, close_reason="the plan has changed", head=""
    )
    return [closed, *abandoned(world, task, at=at)]


def quests_to_write(world: World) -> Iterator[str]:
    """The quests that have to write an item as a task, or its new text, to the source."""
    for quest in world.quests.values():
        if next_to_write(world, quest) and _has_reached_items(world, quest):
            yield quest.id


def _has_reached_items(world: World, quest: Quest) -> bool:
    """Whether the quest has reached its items stage."""
    base = world.positions[quest.id]
    stages = workflow_of(world, base).stages
    planned = next((i for i, stage in enumerate(stages) if stage.does is Does.STEPS), len(stages))
    return stages.index(stage_named(world, base, base.stage)) >= planned


def next_to_write(world: World, quest: Quest) -> list[PlanItem]:
    """The items to write to the source next: those whose dependencies are tasks already.

    At most as many as the quest has slots, so that the first tasks can start before all are
    written. Finished tasks are left out, because their text does not matter any more; tasks that
    cannot be read are written once they can.
    """
    if quest.state != QuestState.OPEN:
        return []
    tasks = {step.key: step.task for step in quest.steps}
    unwritten = (step for step in quest.steps if not step.told and _can_be_written(world, step))
    possible = (step for step in unwritten if all(tasks.get(dep) for dep in step.deps))
    return list(itertools.islice(possible, quest.slots))


def _can_be_written(world: World, step: PlanItem) -> bool:
    task = world.tasks.get(step.task)
    return task is None or not (task.is_over or task.corrupt)


def tasks_recorded(quest: Quest, tasks: Mapping[str, str], *, at: float) -> Fact:
    """Record that these items, by key, are tasks with the text of the plan."""
    plan = tuple(
        tuple(step._replace(task=tasks[step.key], told=True) if step.key in tasks else step)
        for step in quest.steps
    )
    return noted(quest, "steps_told", at=at, plan=plan)


def chains_behind(world: World) -> dict[str, int]:
    """For each task of an open quest, the longest chain of items that depends on it."""
    found: dict[str, int] = {}
    for quest in world.quests.values():
        if quest.state == QuestState.OPEN:
            behind = _chains(quest.steps)
            found |= {step.task: behind[step.key] for step in quest.steps if step.task}
    return found


@functools.lru_cache(maxsize=64)
def _chains(steps: tuple[PlanItem, ...]) -> dict[str, int]:
    """The longest chain behind each item, by its key."""
    longest = {step.key: 0 for step in steps}
    for _ in steps:  # no chain is longer than the plan
        before = dict(longest)
        for step in steps:
            for dep in step.deps:
                longest[dep] = max(longest.get(dep, 0), longest[step.key] + 1)
        if longest == before:
            break
    return longest
