"""A plan item as a task of the source: its text, its dependencies, and its labels."""

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.quest import PlanItem, Quest
from crew.domain.rows.task_item import QUEST_LABEL
from crew.domain.world import World


@frozen
class ItemTask:
    """A task as the plan wants it; `id` is empty until the task was made.

    After a crash a task is recognised by its labels. A task in `taken` already belongs to another
    item, perhaps to an earlier item of the same key.
    """

    quest: str
    key: str
    id: str = ""
    title: str
    text: str = ""
    deps: tuple[str, ...] = ()
    base: str
    taken: frozenset[str] = frozenset()

    @property
    def labels(self) -> tuple[str, str]:
        return f"{QUEST_LABEL}-{self.quest}", f"step-{self.key}"


def step_task(world: World, quest: Quest, step: PlanItem) -> ItemTask:
    tasks = {other.key: other.task for other in quest.steps}
    over = (task.id for task in world.tasks.values() if task.is_over)
    return ItemTask(
        quest=quest.id,
        key=step.key,
        id=step.task,
        title=step.title,
        text=step_text(step),
        deps=tuple(tasks[dep] for dep in step.deps if not _is_gone(world, tasks[dep])),
        base=world.tasks[quest.id].branch,
        taken=frozenset((*world.positions, *over)),
    )


def step_text(step: PlanItem) -> str:
    """The text of an item's task, for the agents that work on it."""
    files = "\n".join(f"- {name}" for name in step.files)
    parts = (
        step.description,
        f"Files:\n{files}" if files else "",
        f"Finished when:\n{step.acceptance}" if step.acceptance else "",
    )
    return "\n\n".join(part for part in parts if part)


def _is_gone(world: World, task: str) -> bool:
    """Whether the source has lost this task: it would refuse it as a dependency."""
    return task in world.tasks and world.tasks[task].gone
