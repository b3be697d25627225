"""Rows that contradict each other after a repair of a damaged database, and what settles them.

Rows that were lost or are older than others would end the runner. Whatever is in doubt is detached:
a run waits for the next free agent, a task without a run waits to be started again, and its branch
has all its commits.
"""

from collections.abc import Iterator

from crew.domain.kernel.fact import Fact
from crew.domain.rows.agent import AgentState
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.task import TaskState
from crew.domain.world import Row, World, noted

_TOGETHER = {
    RunState.INIT: {AgentState.READY, AgentState.STUCK},
    RunState.WORKING: {AgentState.READY, AgentState.WORKING, AgentState.STUCK},
    RunState.REVIEWING: {AgentState.DONE, AgentState.STUCK},
}
"""The states of an agent while its run is in this one."""


def settled(world: World, *, at: float) -> list[Fact]:
    """The facts that settle every contradiction; none if the rows fit together."""
    return [*_runs(world, at), *_agents(world, at), *_tasks(world, at)]


def _runs(world: World, at: float) -> Iterator[Fact]:
    for run in world.runs.values():
        if run.is_live and not _is_current(world, run):
            yield _put(run, at, state=RunState.FAILED, agent=None, error="its task was lost")
        elif run.agent is not None and not _is_carried(world, run):
            yield noted(run, "repaired", at=at, agent=None)


def _agents(world: World, at: float) -> Iterator[Fact]:
    for agent in world.agents.values():
        run = world.runs.get(agent.run or "")
        is_carrying = run is not None and _is_current(world, run) and _is_carried(world, run)
        is_idle = agent.state == AgentState.IDLE and agent.run is None and agent.task is None
        if not is_idle and not (is_carrying and run is not None and run.agent == agent.id):
            yield _put(agent, at, state=AgentState.IDLE, task=None, run=None, pid=None)


def _tasks(world: World, at: float) -> Iterator[Fact]:
    newest: dict[str, int] = {}
    for run in world.runs.values():
        newest[run.task] = max(run.number, newest.get(run.task, 0))
    for task in world.tasks.values():
        if task.run_count < newest.get(task.id, 0):
            yield noted(task, "repaired", at=at, run_count=newest[task.id])
        current = world.runs.get(task.run or "")
        is_forgotten = current is None or not current.is_live
        if task.state == TaskState.IN_PROGRESS and task.run is not None and is_forgotten:
            yield _put(task, at, state=TaskState.TODO, run=None)


def _is_current(world: World, run: Run) -> bool:
    """Whether its task is in progress with this run, or was closed while it was."""
    task = world.tasks.get(run.task)
    if task is None or task.run != run.id:
        return False
    return task.state in {TaskState.IN_PROGRESS, TaskState.CLOSED}


def _is_carried(world: World, run: Run) -> bool:
    """Whether the agent of this run has it too, in a state that fits."""
    agent = world.agents.get(run.agent or "")
    if agent is None or (agent.run, agent.task) != (run.id, run.task):
        return False
    return agent.state in _TOGETHER.get(RunState(run.state), ())


def _put(row: Row, at: float, **changes: object) -> Fact:
    """A change of the state that is in no table: the moves to it are lost."""
    return Fact(kind=row.kind, subject=row.id, trigger="repaired", at=at, changes=changes)
