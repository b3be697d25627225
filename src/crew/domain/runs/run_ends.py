"""What follows when a run ends without success: it failed, was killed, or its task was closed."""

from typing import TYPE_CHECKING, Unpack

from crew.domain.kernel.fact import Fact
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.runs.run_holder import agent_of, freed, lost_cost, shut
from crew.domain.world import World, moved, noted

if TYPE_CHECKING:
    from crew.domain.row_changes import RunFields


def broken_off(
    world: World, run: Run, reason: str, *, at: float, **told: "Unpack[RunFields]"
) -> list[Fact]:
    """End the run without success; its task can be restarted and keeps its work."""
    task = world.tasks[run.task]
    over: RunFields = {"error": reason, "ended_at": at, "agent": None, **told}
    facts = [moved(run, "failed", to=RunState.FAILED, at=at, **over)]
    if task.state == TaskState.IN_PROGRESS:
        facts.append(moved(task, "failed", to=TaskState.ERROR, at=at, queued_at=None))
    agent = agent_of(world, run)
    if agent is not None and agent.state == AgentState.DONE:
        facts.append(freed(agent, "gave_up", at=at))
    return facts


def killed(
    world: World, agent: Agent, *, at: float, trigger: str = "killed", rest_s: float = 0.0
) -> list[Fact]:
    """Cancel the run, free its agent, and return the task to the queue after a pause.

    A task that was stopped by name does not return; it waits until a person starts it.
    """
    facts: list[Fact] = []
    run = world.runs.get(agent.run or "")
    is_stopped = run is not None and _is_stopped(world, run)
    lost = lost_cost(run)
    if run is not None and run.is_live:
        facts.append(
            moved(
                run,
                "failed",
                to=RunState.FAILED,
                at=at,
                error=f"{'stopped' if is_stopped else trigger} with agent {agent.id}",
                stopping=False,
                session_used=run.session_used or run.stepping,
                stepping=False,
                agent=None,
                ended_at=at,
                **lost,
            )
        )
        facts += shut(world, run, at=at)
    task = world.tasks.get(agent.task or "")
    if task is not None and task.state == TaskState.IN_PROGRESS and is_stopped:
        facts.append(moved(task, "failed", to=TaskState.ERROR, at=at))
    elif task is not None and task.state == TaskState.IN_PROGRESS:
        facts.append(moved(task, trigger, to=TaskState.TODO, at=at, not_before=at + rest_s))
    if agent.state == AgentState.IDLE:
        return [*facts, noted(agent, trigger, at=at, killing=False)]
    return [*facts, freed(agent, trigger, at=at, **lost)]


def _is_stopped(world: World, run: Run) -> bool:
    terminal = world.terminal_of(run.id)
    return run.stopping or (terminal is not None and terminal.leaving != "")


def abandoned(world: World, task: Task, *, at: float) -> list[Fact]:
    """End the run of a closed task, whether an agent works on it or it waits for one."""
    facts = [
        noted(agent, "kill_asked", at=at, killing=True)
        for agent in world.agents.values()
        if agent.task == task.id and not agent.killing
    ]
    run = world.runs.get(task.run or "")
    if run is not None and run.is_live and run.agent is None:
        facts.append(moved(run, "failed", to=RunState.FAILED, at=at, error="closed", ended_at=at))
    return facts
