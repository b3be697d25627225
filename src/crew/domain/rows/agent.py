"""The rows of agents: a named slot that carries one task at a time, and a manager without one."""

from enum import StrEnum
from typing import ClassVar

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.machine import Machine, Move
from crew.domain.rows.step import Usage


class AgentState(StrEnum):
    IDLE = "idle"
    READY = "ready"
    WORKING = "working"
    DONE = "done"
    STUCK = "stuck"


AT_WORK = frozenset({AgentState.READY, AgentState.WORKING, AgentState.DONE})
"""States of an agent that has a task and continues it by itself."""


SYMBOLS = {
    AgentState.IDLE: "○",
    AgentState.READY: "◐",
    AgentState.WORKING: "●",
    AgentState.DONE: "✓",
    AgentState.STUCK: "!",
}

_KILL = "`kill` must bring the agent back from every state in which it holds a task"

AGENT = Machine(
    name="agent",
    first=AgentState.IDLE,
    moves=(
        Move(source="idle", target="ready", trigger="assigned", meaning="a task is given to it"),
        Move(source="ready", target="working", trigger="step_started", meaning="first step"),
        Move(source="working", target="working", trigger="step_started", meaning="next step"),
        Move(source="working", target="done", trigger="done", meaning="DONE alone on a line"),
        Move(source="working", target="done", trigger="step_limit", meaning="20 steps"),
        Move(source="done", target="working", trigger="sent_back", meaning="the check was red"),
        Move(source="done", target="idle", trigger="released", meaning="the check was green"),
        Move(
            source="working",
            target="stuck",
            trigger="errors",
            meaning="five errors in a row, or its program is not installed",
        ),
        Move(source="working", target="idle", trigger="killed"),
        Move(source="stuck", target="idle", trigger="killed"),
        Move(source="ready", target="idle", trigger="killed", added=_KILL),
        Move(source="done", target="idle", trigger="killed", added=_KILL),
        Move(
            source="stuck",
            target="working",
            trigger="retried",
            added="a person may let a stuck agent try again",
        ),
        Move(
            source="done",
            target="idle",
            trigger="gave_up",
            added="a run that used up its rounds must not hold its agent forever",
        ),
        Move(
            source="done",
            target="working",
            trigger="next_role",
            added="in a quest the same agent continues with the next role of its item",
        ),
        Move(
            source="ready",
            target="done",
            trigger="to_check",
            added="the items of a quest are merged, and a gate or a review comes next",
        ),
        Move(
            source="ready",
            target="stuck",
            trigger="errors",
            added="a worktree that cannot be made is an error like any other",
        ),
        Move(
            source="working",
            target="idle",
            trigger="parked",
            added="a run that waits for an answer or for its provider frees the slot for others",
        ),
        Move(
            source="done",
            target="idle",
            trigger="parked",
            added="a review that waits for its provider frees the slot for others",
        ),
        Move(
            source="ready",
            target="idle",
            trigger="reset",
            added="with recovery by reset, an interrupted run frees its agent",
        ),
        Move(
            source="working",
            target="idle",
            trigger="reset",
            added="with recovery by reset, an interrupted run frees its agent",
        ),
    ),
)


@frozen
class Agent:
    """`agent_kind` names the configured agent kind (claude, scripted, …) behind this slot.

    A kind that a person chose stays; any other follows the configured default.
    """

    kind: ClassVar[str] = "agent"
    machine: ClassVar[Machine] = AGENT

    id: str
    agent_kind: str
    kind_chosen: bool = False
    state: str = AgentState.IDLE
    started_at: float = 0.0
    task: str | None = None
    run: str | None = None
    task_assigned_at: float | None = None
    last_step_at: float | None = None
    error_count: int = 0
    last_error: str = ""
    retry_at: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    killing: bool = False
    pid: int | None = None
    dismissed: bool = False

    @property
    def is_free(self) -> bool:
        return self.state == AgentState.IDLE and not (self.killing or self.dismissed)


class ManagerState(StrEnum):
    IDLE = "idle"
    ASKED = "asked"


MANAGER = Machine(
    name="manager",
    first=ManagerState.IDLE,
    moves=(
        Move(source="idle", target="asked", trigger="asked", meaning="a step began"),
        Move(source="asked", target="idle", trigger="answered", meaning="that step ended"),
    ),
)


@frozen
class Manager:
    """One call of `crew manager`; with --auto it has many steps, at a terminal one.

    `reported_usd` is the cost of the steps that ended. A terminal reports none, and neither does a
    step that was killed: such a manager stays `asked`.
    """

    kind: ClassVar[str] = "manager"
    machine: ClassVar[Machine] = MANAGER

    id: str
    agent_kind: str = ""
    model: str = ""
    state: str = ManagerState.IDLE
    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reported_usd: float | None = 0.0
    started_at: float = 0.0

    @property
    def cost_usd(self) -> float | None:
        """None, for unknown, from before a step starts until it has reported its cost."""
        return self.reported_usd if self.state == ManagerState.IDLE else None

    @property
    def reported(self) -> Usage:
        """The sum of the steps that ended."""
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost_usd=self.reported_usd,
        )
