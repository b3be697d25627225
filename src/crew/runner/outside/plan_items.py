"""Writes planned items as tasks of the source, finds them again by label, and updates them."""

import time
from dataclasses import dataclass

from crew.domain.quests.item_tasks import ItemTask
from crew.domain.rows.task_item import TaskItem
from crew.tasks.source_snapshot import Snapshot
from crew.tasks.task_source import NewTask, TaskChanges, TaskSource


@dataclass(slots=True)
class PlannedTasks:
    """`_seen` is the last snapshot of the source, so that the next scan reads only changes."""

    source: TaskSource
    _seen: Snapshot | None = None

    def tell(self, step: ItemTask) -> TaskItem:
        """Write the item's task, or bring an existing one up to date; returns it."""
        found = self._find(step)
        if found is None:
            return self.source.show(self.source.add(_new(step), at=time.time()))
        self._bring_up_to_date(found, step)
        return self.source.show(found.id)

    def _bring_up_to_date(self, item: TaskItem, step: ItemTask) -> None:
        if (item.title, item.body.strip()) != (step.title, step.text.strip()):
            self.source.edit(item.id, TaskChanges(title=step.title, body=step.text))
        for dep in set(step.deps) - set(item.deps):
            self.source.add_dep(item.id, dep)
        for dep in set(item.deps) - set(step.deps):
            self.source.remove_dep(item.id, dep)

    def _find(self, step: ItemTask) -> TaskItem | None:
        if step.id:
            return self.source.show(step.id)
        self._seen = self.source.scan(self._seen)
        strangers = (item for item in self._seen.items if item.id not in step.taken)
        return next((item for item in strangers if set(step.labels) <= set(item.labels)), None)


def _new(step: ItemTask) -> NewTask:
    return NewTask(
        title=step.title,
        body=step.text,
        labels=step.labels,
        parent=step.quest,
        deps=step.deps,
        base=step.base,
    )
