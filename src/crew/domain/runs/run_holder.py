"""The holder of a run, an agent slot or a terminal, and how each of them releases it."""

from typing import TYPE_CHECKING, Unpack

from crew.domain.kernel.fact import Fact
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.run import Run
from crew.domain.rows.step import LostCost
from crew.domain.rows.terminal import TerminalState
from crew.domain.world import World, moved

if TYPE_CHECKING:
    from crew.domain.field_groups import StepUse
    from crew.domain.row_changes import TerminalFields


def lost_cost(run: Run | None) -> LostCost:
    """What a run and its agent record if crew ended the step under way, or died during it.

    The program reported no figures, so the cost is unknown.
    """
    return {"cost_usd": None} if run is not None and run.stepping else {}


def agent_of(world: World, run: Run) -> Agent | None:
    return world.agents.get(run.agent or "")


def freed(agent: Agent, trigger: str, *, at: float, **used: "Unpack[StepUse]") -> Fact:
    return moved(
        agent,
        trigger,
        to=AgentState.IDLE,
        at=at,
        **used,
        task=None,
        run=None,
        task_assigned_at=None,
        error_count=0,
        last_error="",
        retry_at=None,
        killing=False,
        pid=None,
    )


def is_waiting(world: World, run: Run) -> bool:
    """Whether the next free agent may take this run."""
    is_held = run.agent is not None or world.terminal_of(run.id) is not None
    return run.is_live and not is_held and not run.question


def shut(world: World, run: Run, *, at: float) -> list[Fact]:
    """Close the terminal of a run, if it has one."""
    terminal = world.terminal_of(run.id)
    if terminal is None:
        return []
    changes: TerminalFields = {"pid": None, "started": None, "leaving": "", "untyped": False}
    if terminal.held or terminal.dialog:
        changes |= {"held": False, "dialog": ""}
    return [moved(terminal, "closed", to=TerminalState.CLOSED, at=at, **changes)]
