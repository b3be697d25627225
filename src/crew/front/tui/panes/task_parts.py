"""The parts of a task's description that crew adds: its quest, the roles in it, its reviews."""

from collections.abc import Iterator

from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.world import World
from crew.front.tui.widgets.line_list import ShownLine, heading, text_line
from crew.front.tui.widgets.paint import STATUS_STYLES, fit
from crew.front.tui.widgets.safe_text import safe
from crew.runner.views.quest_views import quest_part, step_view

Field = tuple[str, str]


def quest_fields(world: World, row: Task) -> Iterator[Field]:
    """The quest of a task, its stage, and the role that acts with what it does."""
    part = quest_part(world, row)
    if part is None:
        return
    what = f"item {part['step']} of quest {part['id']}" if part["step"] else "its request"
    yield "quest", f"{what}: {part['reason']}" if part["reason"] else what
    yield "stage", part["stage"] or ""
    yield "role", ", ".join(filter(None, (part["role"], part["role_title"])))


def review_fields(run: Run) -> Iterator[Field]:
    """Each verdict of a reviewer, the newest last."""
    for commit, reviewer, passed in run.verdicts:
        yield "review", f"{reviewer} {'passed' if passed else 'refused'} {commit[:12]}"


def quest_items(world: World, task: str) -> Iterator[ShownLine]:
    """The items of the quest that this task holds the request of, each with its role."""
    quest = world.quests.get(task)
    if quest is None:
        return
    yield text_line("")
    yield heading(f"Items of the quest ({safe(quest.workflow)}, {safe(quest.state)})")
    if not quest.steps:
        yield text_line("  no plan yet: a role of the quest makes it", "muted")
    for step in quest.steps:
        view = step_view(world, step, {})
        role = ", ".join(filter(None, (view["role"], view["role_title"])))
        yield ShownLine(
            spans=(
                (f"  {fit(safe(step.task or '-'), 5)}", "bold"),
                (fit(safe(view["status"]), 13), STATUS_STYLES.get(view["status"], "")),
                (safe(step.title), ""),
                (f"  {safe(role)}" if role else "", "muted"),
            )
        )
