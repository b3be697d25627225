"""The board of a manager: the open tasks, why each waits, and which of them need a decision."""

from enum import StrEnum

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import terminal_name
from crew.domain.lead import Leads
from crew.domain.rows.agent import AgentState
from crew.domain.rows.task import FINISHED, Task, TaskState
from crew.domain.tasks.readiness import is_ready, why_not
from crew.domain.world import World


@frozen
class Point:
    """One open task; `decidable` means that it needs a decision to continue."""

    task: str
    title: str
    state: str
    why: str
    decidable: bool


class ManagerMove(StrEnum):
    """The next move of the manager."""

    FINISHED = "finished"
    ASK = "ask"
    WAIT = "wait"
    GIVE_UP = "give_up"


def board(world: World, leads: Leads, *, runner_up: bool) -> tuple[Point, ...]:
    """Every task that is neither merged nor closed, the oldest first."""
    tasks = sorted(world.tasks.values(), key=lambda task: (task.created_at, task.id))
    return tuple(
        _point(world, task, leads, runner_up=runner_up)
        for task in tasks
        if task.state not in FINISHED and task.is_there
    )


def next_move(
    points: tuple[Point, ...], *, asked: int, patience: int, plans: bool = False
) -> ManagerMove:
    """The next move; `asked` counts how often the manager was asked about this same board.

    `plans` means that a person's instructions have not been planned yet, which needs no open task.
    """
    if plans:
        return ManagerMove.ASK
    if not points:
        return ManagerMove.FINISHED
    if any(point.decidable for point in points) and asked < patience:
        return ManagerMove.ASK
    moves_by_itself = any(_is_under_way(point) for point in points)
    return ManagerMove.WAIT if moves_by_itself else ManagerMove.GIVE_UP


def _is_under_way(point: Point) -> bool:
    return not point.decidable and not point.why.startswith("waits for")


def _point(world: World, task: Task, leads: Leads, *, runner_up: bool) -> Point:
    why, decidable = _why(world, task, leads, runner_up=runner_up)
    return Point(task=task.id, title=task.title, state=task.state, why=why, decidable=decidable)


def _why(world: World, task: Task, leads: Leads, *, runner_up: bool) -> tuple[str, bool]:
    if task.corrupt:
        return "its file cannot be read", True
    if task.state == TaskState.TODO:
        return _why_todo(world, task, leads, runner_up=runner_up)
    if task.state == TaskState.DONE:
        return _why_done(task, runner_up=runner_up)
    run = world.runs.get(task.run or "")
    if task.state == TaskState.ERROR:
        return f"failed: {run.error if run and run.error else 'for an unknown reason'}", True
    if run is not None and leads.of_run(world, run).is_watched:
        return f"at the terminal {terminal_name(task.id)}", True
    agent = world.agents.get((run.agent if run else None) or "")
    if agent is not None and agent.state == AgentState.STUCK:
        return f"agent {agent.id} is stuck: {agent.last_error}", True
    if agent is None:
        return "in progress, but no agent works on it", not runner_up
    return f"agent {agent.id} works on it", not runner_up


def _why_done(task: Task, *, runner_up: bool) -> tuple[str, bool]:
    if task.conflict:
        return f"conflicts, and asks {task.conflict} what to do", True
    if task.awaits_delivery:
        return f"landed, on its way to {task.target}", not runner_up
    if task.is_queued:
        return "in the merge queue", not runner_up
    return f"done; crew merge {task.id} merges it", True


def _why_todo(world: World, task: Task, leads: Leads, *, runner_up: bool) -> tuple[str, bool]:
    if is_ready(world, task, leads):
        return "ready to start", not (runner_up and world.crew)
    known = world.tasks
    missing = [dep for dep in task.deps if dep not in known]
    if missing:
        return f"depends on {', '.join(missing)}, which does not exist", True
    if all(known[dep].is_over for dep in task.deps):
        return f"waits for its quest: {why_not(world, task, leads)}", False
    return why_not(world, task, leads).removeprefix("it "), False
