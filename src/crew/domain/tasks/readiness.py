"""Whether a task can start, and the reasons why it cannot: the one rule of lists and agents."""

from collections.abc import Iterable

from crew.domain.kernel.errors import Conflict
from crew.domain.lead import Leads
from crew.domain.requests import Asked
from crew.domain.rows.task import FINISHED, Task, TaskState
from crew.domain.rules import Rules
from crew.domain.world import World

SHOW = "`crew show ID` prints its state and what it waits for"


def is_ready(world: World, task: Task, leads: Leads) -> bool:
    """Whether it is todo, readable, and every dependency is known and landed or closed."""
    return (
        task.state == TaskState.TODO
        and not task.corrupt
        and task.is_there
        and not open_deps(world, task)
        and leads.of_task(world, task.id).may_take_up(world, task)
    )


def startable(world: World, leads: Leads, rules: Rules) -> list[Task]:
    """The tasks that a free agent could be given now, the next one first.

    `refuse_waiting` refuses none of them, and each asks for a kind that can be started, or for no
    certain one.
    """
    found = [task for task in world.tasks.values() if is_ready(world, task, leads)]
    return in_turn(world, (one for one in found if _is_open(world, one, leads, rules)), leads)


def _is_open(world: World, task: Task, leads: Leads, rules: Rules) -> bool:
    lead = leads.of_task(world, task.id)
    wanted = lead.wanted_kind(world, task)
    return lead.has_room(world, task) and (wanted is None or rules.can_use(wanted))


def in_turn(world: World, tasks: Iterable[Task], leads: Leads) -> list[Task]:
    """The tasks in the order in which agents take them: by priority and age.

    Of the tasks that a lead puts in order, the one with the longest chain behind it is first.
    """
    behind = leads.chains_behind(world)
    return sorted(
        tasks, key=lambda t: (t.priority, -behind.get(t.id, 0), t.created_at, len(t.id), t.id)
    )


def open_deps(world: World, task: Task) -> list[str]:
    """The dependencies that still hold the task back, unknown ids included."""
    tasks = world.tasks
    return [dep for dep in task.deps if dep not in tasks or not tasks[dep].is_over]


def refuse_waiting(asked: Asked[object], task: Task, *, takes_slot: bool = False) -> None:
    """Raise with the reason unless the task can start now; an agent also needs a free slot."""
    lead = asked.leads.of_task(asked.world, task.id)
    if not can_start(asked.world, task, asked.leads):
        why = why_not(asked.world, task, asked.leads)
        raise Conflict(f"task {task.id} cannot start: {why}", hint=SHOW, code="cannot_start")
    if takes_slot and not lead.has_room(asked.world, task):
        raise Conflict(
            f"every slot of quest {task.quest} is in use",
            hint="`crew quest show` lists its agents; the next free slot takes the task",
            code="no_free_slot",
        )


def can_start(world: World, task: Task, leads: Leads) -> bool:
    """Whether the task can be started by hand; a failed one may ignore its dependencies."""
    if task.state == TaskState.ERROR and not task.corrupt and task.is_there:
        return leads.of_task(world, task.id).may_take_up(world, task)
    return is_ready(world, task, leads)


def why_not(world: World, task: Task, leads: Leads) -> str:
    if task.corrupt or not task.is_there:
        return not_read(task)
    if task.state != TaskState.TODO:
        return f"it is {task.state}"
    if reason := leads.of_task(world, task.id).why_not(world, task):
        return reason
    return f"it waits for {', '.join(open_deps(world, task)) or 'its turn in the plan'}"


def not_read(task: Task) -> str:
    """Why the source does not list a task now."""
    if task.corrupt:
        return "its file cannot be read"
    if task.gone:
        return "its source does not have it any more"
    return "its file is missing; the task waits for it (is another branch checked out?)"


def no_commit(task: Task) -> str:
    """Why a done task cannot be merged: no run of crew completed it."""
    return f"it is done, but crew knows no commit of it; `crew close {task.id}` ends it"


def not_begun(world: World, task: Task) -> str:
    """Why a task with the label of a quest is not led by that quest."""
    if task.quest == task.id:
        return "it has the label quest, but no quest belongs to it: `crew quest new` begins one"
    label = f"remove the label quest-{task.quest} to work on it by itself"
    if task.quest not in world.quests:
        return f"its label names quest {task.quest}, which does not exist: {label}"
    return f"it is in no plan of quest {task.quest} yet: {label}"


def next_step(task: Task, start: str) -> str:
    """The hint for a task that has no live run; `start` describes what starting it does."""
    if task.state in FINISHED:
        look = f"`crew show {task.id}` and `crew diff {task.id}` show what became of it"
        return f"{look}, `crew new` makes a task for more"
    return f"`crew start {task.id}` {start}"
