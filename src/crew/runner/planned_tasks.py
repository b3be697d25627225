"""Planned steps as tasks of the source: made once, found again by their labels, kept up to date."""

import time

from crew.domain.quest import PlannedStep
from crew.domain.task_item import QUEST_LABEL, TaskItem
from crew.tasks.source import NewTask, TaskChanges, TaskSource


def tell_step(
    source: TaskSource,
    quest: str,
    step: PlannedStep,
    *,
    text: str,
    deps: tuple[str, ...],
    base: str,
    taken: frozenset[str],
) -> TaskItem:
    """The step's task as the source has it now; nothing changes when it is there already."""
    labels = (f"{QUEST_LABEL}-{quest}", f"step-{step.key}")
    found = _find(source, step.task, labels, taken)
    if found is None:
        new = NewTask(
            title=step.title, body=text, labels=labels, parent=quest, deps=deps, base=base
        )
        return source.show(source.add(new, at=time.time()))
    if (found.title, found.body.strip()) != (step.title, text.strip()):
        source.edit(found.id, TaskChanges(title=step.title, body=text))
    for dep in set(deps) - set(found.deps):
        source.add_dep(found.id, dep)
    for dep in set(found.deps) - set(deps):
        source.remove_dep(found.id, dep)
    return source.show(found.id)


def _find(
    source: TaskSource, task: str, labels: tuple[str, ...], taken: frozenset[str]
) -> TaskItem | None:
    """Made before a crash, it is there although nobody knows its id."""
    if task:
        return source.show(task)
    strangers = (item for item in source.scan().items if item.id not in taken)
    return next((item for item in strangers if set(labels) <= set(item.labels)), None)
