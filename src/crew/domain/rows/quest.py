"""The rows of quests: a quest with its plan of items, and the position of each of its tasks."""

import functools
from enum import StrEnum
from typing import ClassVar, NamedTuple

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.machine import Machine, Move


class ItemState(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    PARTIALLY_COMPLETE = "partially_complete"
    WAITING_FOR_USER = "waiting_for_user"
    WAITING_FOR_ROLE = "waiting_for_role"
    BLOCKED = "blocked"
    COMPLETE = "complete"
    DROPPED = "dropped"


_SIGNALLED = "a signal, or the end of a step without one, moves the item"
_KILLED = "its agent was killed, or it was stopped"
_DROP = "a new plan may leave an item out, and a quest may be cancelled"
_BY_HAND = "a person took it over and finished it"
_OVER = frozenset({ItemState.COMPLETE, ItemState.DROPPED})
_UNFINISHED = ("pending", "in_progress", "waiting_for_user", "waiting_for_role", "blocked")

QUEST_STEP = Machine(
    name="quest step",
    first=ItemState.PENDING,
    moves=(
        Move(source="pending", target="in_progress", trigger="slot_assigned"),
        Move(source="in_progress", target="complete", trigger="complete"),
        Move(source="in_progress", target="in_progress", trigger="next_role", added=_SIGNALLED),
        Move(source="in_progress", target="partially_complete", trigger="partially_complete"),
        Move(source="partially_complete", target="in_progress", trigger="slot_assigned"),
        Move(source="in_progress", target="waiting_for_user", trigger="needs_user_input"),
        Move(source="waiting_for_user", target="in_progress", trigger="answered"),
        Move(source="in_progress", target="waiting_for_role", trigger="needs_role_followup"),
        Move(source="waiting_for_role", target="in_progress", trigger="role_completed"),
        Move(
            source="waiting_for_role",
            target="complete",
            trigger="role_completed",
            meaning="resume: false, the flow continues without the session that asked",
        ),
        Move(source="in_progress", target="pending", trigger="crashed", added=_SIGNALLED),
        Move(source="waiting_for_user", target="pending", trigger="crashed", added=_KILLED),
        Move(source="blocked", target="pending", trigger="crashed", added=_KILLED),
        Move(
            source="in_progress",
            target="blocked",
            trigger="retries_spent",
            added="a role that used up its retries stops, and a person is asked",
        ),
        Move(
            source="pending",
            target="blocked",
            trigger="retries_spent",
            added="a person finished it, and the merge queue sent it back too often",
        ),
        Move(
            source="blocked",
            target="pending",
            trigger="answered",
            added="the answer of a person lets the item try again",
        ),
        *(
            Move(source=s, target="complete", trigger="by_hand", added=_BY_HAND)
            for s in _UNFINISHED
        ),
        *(Move(source=s, target="dropped", trigger="dropped", added=_DROP) for s in _UNFINISHED),
    ),
)


class QuestState(StrEnum):
    OPEN = "open"
    COMPLETE = "complete"
    CANCELLED = "cancelled"


QUEST = Machine(
    name="quest",
    first=QuestState.OPEN,
    moves=(
        Move(source="open", target="complete", trigger="landed", meaning="it is in the target"),
        Move(source="open", target="cancelled", trigger="cancelled", meaning="its task is closed"),
    ),
)


class PlanItem(NamedTuple):
    """An item of the plan; `task` was made for it, `told` means that the task has its text."""

    key: str
    title: str
    description: str = ""
    deps: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    acceptance: str = ""
    task: str = ""
    told: bool = False


class RoleEntry(NamedTuple):
    """An entry of a task's story: how a role, a gate or a reviewer ended its part."""

    at: float
    role: str
    session: str
    signal: str
    words: str


@frozen
class Quest:
    """A quest has the id of the task that holds the request; that task's branch is the quest's.

    `definition` is its workflow as it was when the quest began. `sessions` are those that a role
    keeps for its next item: the role, its agent kind and the session, the newest last.
    """

    kind: ClassVar[str] = "quest"
    machine: ClassVar[Machine] = QUEST

    id: str
    workflow: str
    definition: str
    slots: int
    state: str = QuestState.OPEN
    plan: tuple[tuple[object, ...], ...] = ()
    plan_number: int = 0
    created_at: float = 0.0
    sessions: tuple[tuple[str, str, str], ...] = ()

    @property
    def steps(self) -> tuple[PlanItem, ...]:
        return _steps_of(self.plan)

    @property
    def told(self) -> frozenset[str]:
        """The tasks that have the text of the current plan."""
        return _told_in(self.plan)


@functools.lru_cache(maxsize=64)
def _steps_of(plan: tuple[tuple[object, ...], ...]) -> tuple[PlanItem, ...]:
    return tuple(PlanItem(*step) for step in plan)  # type: ignore[arg-type]


@functools.lru_cache(maxsize=64)
def _told_in(plan: tuple[tuple[object, ...], ...]) -> frozenset[str]:
    return frozenset(step.task for step in _steps_of(plan) if step.told)


_OVER = frozenset({ItemState.COMPLETE, ItemState.DROPPED})


def role_counter(role: str) -> str:
    """The key under which visits of a role are counted; a stage may have the same name."""
    return f"role:{role}"


CONFLICTS = "queue:conflict"
"""The key under which conflicts are counted: a task that has them did nothing wrong."""


@frozen
class Position:
    """The position of a task in its quest's workflow, or of a follow-up role in that task.

    The position of a task has the task's id; `key` is the item's name in the plan, empty for the
    request itself. A follow-up has an `asker`: the position that waits for it, and that continues
    in its own session afterwards if it wanted to `resume`. `acting` is the position whose role acts
    now; the others keep fields such as `session`, to continue later. `visits` counts how often
    each role started, each gate was passed through and the task had a conflict; `failures` counts
    the errors of the role in a row. `passed` is the commit of an item that had passed all its
    stages before it came back with a conflict. `asked_by` is the role that asked for a follow-up.
    `council` is the channel in which the task is discussed now.
    """

    kind: ClassVar[str] = "walk"
    machine: ClassVar[Machine] = QUEST_STEP

    id: str
    quest: str
    task: str
    key: str = ""
    role: str = ""
    state: str = ItemState.PENDING
    stage: str = ""
    acting: str = ""
    asker: str = ""
    resume: bool = True
    followups: int = 0
    agent_kind: str = ""
    session: str = ""
    session_used: bool = False
    session_number: int = 0
    visits: tuple[tuple[str, int], ...] = ()
    failures: int = 0
    story: tuple[tuple[object, ...], ...] = ()
    council: str = ""
    passed: str = ""
    asked_by: str = ""

    @property
    def is_over(self) -> bool:
        return self.state in _OVER

    @property
    def said(self) -> tuple[RoleEntry, ...]:
        return tuple(RoleEntry(*said) for said in self.story)  # type: ignore[arg-type]

    def visited(self, name: str) -> int:
        return dict(self.visits).get(name, 0)
