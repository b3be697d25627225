"""What follows when a run ends without success: it failed, was killed or given up."""

from typing import Any, TypedDict

from crew.domain.kernel.fact import Fact
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.runs.run_holder import agent_of, freed, shut
from crew.domain.world import World, moved, noted


def broken_off(world: World, run: Run, reason: str, *, at: float, **told: Any) -> list[Fact]:
    """The run is over without success; the task can be restarted, nothing of it is removed."""
    task = world.tasks[run.task]
    over = {"error": reason, "ended_at": at, "agent": None, **told}
    facts = [moved(run, "failed", to=RunState.FAILED, at=at, **over)]
    if task.state == TaskState.IN_PROGRESS:
        facts.append(moved(task, "failed", to=TaskState.ERROR, at=at, queued_at=None))
    agent = agent_of(world, run)
    if agent is not None and agent.state == AgentState.DONE:
        facts.append(freed(agent, "gave_up", at=at))
    return facts


class Unknown(TypedDict, total=False):
    """What a step has cost that was cut off: its program reports no figures."""

    cost_usd: float | None


def killed(
    world: World, agent: Agent, *, at: float, trigger: str = "killed", rest_s: float = 0.0
) -> list[Fact]:
    """The agent is idle again, its run cancelled, its task back in the queue after a rest.

    A task that was stopped by name does not go back: it waits for whoever starts it again.
    """
    facts: list[Fact] = []
    run = world.runs.get(agent.run or "")
    is_stopped = run is not None and _is_stopped(world, run)
    # What the step that was cut off has used, its program never said.
    unknown: Unknown = {"cost_usd": None} if run is not None and run.stepping else {}
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
                **unknown,
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
    return [*facts, freed(agent, trigger, at=at, **unknown)]


def _is_stopped(world: World, run: Run) -> bool:
    terminal = world.terminal_of(run.id)
    return run.stopping or (terminal is not None and terminal.leaving != "")


def abandoned(world: World, task: Task, *, at: float) -> list[Fact]:
    """What ends with a task that is closed: whoever works at it, and a run that waits for one."""
    facts = [
        noted(agent, "kill_asked", at=at, killing=True)
        for agent in world.agents.values()
        if agent.task == task.id and not agent.killing
    ]
    run = world.runs.get(task.run or "")
    if run is not None and run.is_live and run.agent is None:
        facts.append(moved(run, "failed", to=RunState.FAILED, at=at, error="closed", ended_at=at))
    return facts
