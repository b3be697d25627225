"""What the board needs to know about all tasks, computed once for each change of a table."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.agent import Manager
from crew.domain.rows.channel import Member
from crew.domain.rows.question import Question
from crew.domain.rows.run import Run
from crew.domain.rows.task import FINISHED, Task, TaskState
from crew.domain.rows.task_item import TaskItem
from crew.front.tui.board.kept_results import by_identity
from crew.front.tui.live.picture import Picture
from crew.tasks.source_snapshot import Items


@frozen
class TaskColumns:
    """Values by task, in the order of the ids.

    `over` are tasks that hold nothing back any more; `blocked` are open ones that wait for another.
    """

    status: Mapping[str, str]
    counts: Mapping[str, int]
    over: frozenset[str]
    blocked: frozenset[str]
    queued: int
    id_width: int


def columns_of(picture: Picture) -> TaskColumns:
    return _columns(picture.items, picture.world.tasks)


def column(items: Mapping[str, TaskItem], name: str) -> Mapping[str, Any]:
    """One field of all tasks; the usual mapping has it without making the tasks."""
    if isinstance(items, Items):
        return items.column(name)
    return {task: getattr(item, name) for task, item in items.items()}


@by_identity
def _columns(items: Mapping[str, TaskItem], rows: Mapping[str, Task]) -> TaskColumns:
    status = {task: str(state) for task, state in column(items, "status").items()}
    for task, row in rows.items():
        if row.state != row.written and task in status:
            status[task] = str(row.state)
    corrupt = column(items, "corrupt")
    finished = {t for t, state in status.items() if state in FINISHED and not corrupt[t]}
    over = frozenset(finished.union(task for task, row in rows.items() if row.is_over))
    return TaskColumns(
        status=status,
        counts=Counter(status.values()),
        over=over,
        blocked=_blocked(column(items, "deps"), status, over),
        queued=sum(row.is_queued for row in rows.values()),
        id_width=max(map(len, status), default=1),
    )


def _blocked(
    deps: Mapping[str, Collection[str]], status: Mapping[str, str], over: frozenset[str]
) -> frozenset[str]:
    waiting = {TaskState.TODO, TaskState.ERROR}
    return frozenset(
        task
        for task, of in deps.items()
        if of and status[task] in waiting and any(dep not in over for dep in of)
    )


@by_identity
def agents_by_task(runs: Mapping[str, Run], rows: Mapping[str, Task]) -> Mapping[str, str]:
    """The agent of each live run and its kind, as `A/claude`."""
    found: dict[str, str] = {}
    for run in runs.values():
        row = rows.get(run.task) if run.is_live else None
        if row is not None and row.run == run.id:
            found[run.task] = "/".join(filter(None, (run.agent, run.agent_kind)))
    return found


@by_identity
def asking_runs(questions: Mapping[str, Question]) -> Mapping[str, Question]:
    """The open questions by their run; the newest one of a run counts."""
    return {one.run: one for one in questions.values() if one.is_open}


@by_identity
def spent(
    runs: Mapping[str, Run], members: Mapping[str, Member], managers: Mapping[str, Manager]
) -> tuple[float, bool]:
    """The dollars of all runs, members and managers, and whether some costs are unknown."""
    costs = [one.cost_usd for rows in (runs, members, managers) for one in rows.values()]
    return sum(cost for cost in costs if cost is not None), None in costs
