"""Who holds a run, and how an agent lets go of its task."""

from typing import Any

from crew.domain.kernel.fact import Fact
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.run import Run
from crew.domain.world import World, moved


def agent_of(world: World, run: Run) -> Agent | None:
    return world.agents.get(run.agent or "")


def freed(agent: Agent, trigger: str, *, at: float, **changes: Any) -> Fact:
    return moved(
        agent,
        trigger,
        to=AgentState.IDLE,
        at=at,
        **changes,
        task=None,
        run=None,
        task_assigned_at=None,
        error_count=0,
        last_error="",
        retry_at=None,
        killing=False,
        pid=None,
    )
