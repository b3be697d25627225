"""A planned step as a task of the source: its text, its place, and how it is found again."""

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.quest import PlanItem, Quest
from crew.domain.rows.task_item import QUEST_LABEL
from crew.domain.world import World


@frozen
class ItemTask:
    """A task as the plan wants it; `id` is empty until one was made.

    Made before a crash, it is known by its labels alone. One that is `taken` by a step, also by an
    earlier one of that name, is another's.
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
    """What a step's task says, for whoever works at it."""
    files = "\n".join(f"- {name}" for name in step.files)
    parts = (
        step.description,
        f"Files:\n{files}" if files else "",
        f"Finished when:\n{step.acceptance}" if step.acceptance else "",
    )
    return "\n\n".join(part for part in parts if part)


def _is_gone(world: World, task: str) -> bool:
    """The source refuses a dependency that it does not have; whoever is gone was given up."""
    return task in world.tasks and world.tasks[task].gone
