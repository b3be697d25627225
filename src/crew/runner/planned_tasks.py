"""Planned steps as tasks of the source: made once, found again by their labels, kept up to date."""

import time
from dataclasses import dataclass

from crew.domain.quest import PlannedStep
from crew.domain.task_item import QUEST_LABEL, TaskItem
from crew.tasks.snapshot import Snapshot
from crew.tasks.source import NewTask, TaskChanges, TaskSource


@dataclass(slots=True)
class PlannedTasks:
    """`_seen` is the last look at the source: the next one reads only what changed since."""

    source: TaskSource
    _seen: Snapshot | None = None

    def tell(
        self,
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
        found = self._find(step.task, labels, taken)
        if found is None:
            new = NewTask(
                title=step.title, body=text, labels=labels, parent=quest, deps=deps, base=base
            )
            return self.source.show(self.source.add(new, at=time.time()))
        return self._bring_up_to_date(found, title=step.title, text=text, deps=deps)

    def _bring_up_to_date(
        self, item: TaskItem, *, title: str, text: str, deps: tuple[str, ...]
    ) -> TaskItem:
        if (item.title, item.body.strip()) != (title, text.strip()):
            self.source.edit(item.id, TaskChanges(title=title, body=text))
        for dep in set(deps) - set(item.deps):
            self.source.add_dep(item.id, dep)
        for dep in set(item.deps) - set(deps):
            self.source.remove_dep(item.id, dep)
        return self.source.show(item.id)

    def _find(self, task: str, labels: tuple[str, ...], taken: frozenset[str]) -> TaskItem | None:
        """Made before a crash, it is there although nobody knows its id."""
        if task:
            return self.source.show(task)
        self._seen = self.source.scan(self._seen)
        strangers = (item for item in self._seen.items if item.id not in taken)
        return next((item for item in strangers if set(labels) <= set(item.labels)), None)
