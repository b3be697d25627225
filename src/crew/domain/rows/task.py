"""The row of a task: the unit of work, with its branch, worktree and place in the merge queue."""

from enum import StrEnum
from typing import ClassVar, TypedDict

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.machine import Machine, Move
from crew.domain.rows.terms import Terms


class TaskState(StrEnum):
    TODO = "todo"
    IN_PROGRESS = "in_progress"
    DONE = "done"
    MERGED = "merged"
    CLOSED = "closed"
    ERROR = "error"


FINISHED = frozenset({TaskState.MERGED, TaskState.CLOSED})
"""The states that a task never leaves."""

_CLOSE = "a task can be given up whatever its state"

TASK = Machine(
    name="task",
    first=TaskState.TODO,
    moves=(
        Move(source="todo", target="in_progress", trigger="started"),
        Move(source="in_progress", target="done", trigger="completed", meaning="checks passed"),
        Move(source="done", target="merged", trigger="delivered", meaning="the target has it"),
        Move(
            source="done",
            target="merged",
            trigger="landed",
            added="facts of earlier versions have it, when landed tasks did not wait for delivery",
        ),
        Move(source="in_progress", target="closed", trigger="closed"),
        Move(source="in_progress", target="error", trigger="failed", meaning="ended or stopped"),
        Move(source="error", target="in_progress", trigger="started", meaning="restarted"),
        Move(source="todo", target="closed", trigger="closed", added=_CLOSE),
        Move(source="done", target="closed", trigger="closed", added=_CLOSE),
        Move(source="error", target="closed", trigger="closed", added=_CLOSE),
        Move(
            source="done",
            target="in_progress",
            trigger="sent_back",
            added="a conflict or a red gate after the merge sends the task back to its session",
        ),
        Move(
            source="in_progress",
            target="todo",
            trigger="killed",
            added="`kill` gives the task back to the queue",
        ),
        Move(
            source="in_progress",
            target="todo",
            trigger="reset",
            added="with recovery by reset, the task stays open for the next agent",
        ),
        Move(
            source="error",
            target="todo",
            trigger="reopened",
            added="a person may put a failed task back into the queue",
        ),
    ),
)


@frozen
class Task:
    """What crew itself knows about a task; the text stays with its source.

    `written` is the state that was last written to the source or read from it. `quest` is the quest
    whose workflow leads it; until its position exists, no agent starts it. `missing_at` is since
    when its source does not list it; after a while it is `gone`. `gate` is the command that last
    tested its work, "none" if there was none. `terms` are the settings of its runs that differ from
    the config. `not_before` lets a killed task rest, so that a person can close or change it first.

    `landed_commit` is set when its work is in the integration ref, from which only a person's
    rewrite of the target takes it back; the task is `merged` once its target branch has that commit
    too. `conflict` is the
    question that must be answered before the task can land, and `favours` the side that wins in the
    conflicts of this head, as a person chose. `dropped_at` is when crew saw that a person had taken
    its work out of the target again.
    """

    kind: ClassVar[str] = "task"
    machine: ClassVar[Machine] = TASK

    id: str
    title: str = ""
    state: str = TaskState.TODO
    written: str = TaskState.TODO
    deps: tuple[str, ...] = ()
    priority: int = 2
    created_at: float = 0.0
    wants_agent: str | None = None
    target: str = ""
    issue: int | None = None
    skip_review: bool | None = None
    terms: Terms = ()
    corrupt: bool = False
    quest: str = ""
    run: str | None = None
    run_count: int = 0
    branch: str = ""
    worktree: str = ""
    head: str = ""
    gate: str = ""
    queued_at: float | None = None
    landed_commit: str = ""
    dropped_at: float | None = None
    conflict: str = ""
    favours: str = ""
    close_reason: str = ""
    missing_at: float | None = None
    gone: bool = False
    cleaning: bool = False
    not_before: float | None = None

    @property
    def must_be_finished(self) -> bool:
        """Whether its agent must say that it is finished: it is a loop, which has such a word."""
        return "done_word" in dict(self.terms)

    @property
    def is_there(self) -> bool:
        """Whether its source lists it now, so that its text can be read and its state written."""
        return self.missing_at is None and not self.gone

    @property
    def is_written(self) -> bool:
        """Whether its source has its state, or cannot be written."""
        return self.written == self.state or self.corrupt or not self.is_there

    @property
    def is_at_work(self) -> bool:
        """Whether a run works on it, or its work waits to land and may still be sent back."""
        return self.state in {TaskState.IN_PROGRESS, TaskState.DONE}

    @property
    def is_queued(self) -> bool:
        """Whether it waits in the merge queue."""
        is_kept = self.landed_commit or self.conflict
        return self.state == TaskState.DONE and self.queued_at is not None and not is_kept

    @property
    def awaits_delivery(self) -> bool:
        """Whether it has landed and its target branch does not have it yet."""
        return self.state == TaskState.DONE and self.landed_commit != ""

    @property
    def is_over(self) -> bool:
        """Whether no work on it is left, so that its dependents start on top of landed work."""
        return self.state in FINISHED or self.awaits_delivery

    @property
    def awaits_merge(self) -> bool:
        """Whether it is done and in no queue, so that `crew merge` can merge its known commit."""
        is_done = self.state == TaskState.DONE and bool(self.head)
        return is_done and self.queued_at is None and self.is_there


class OutOfQueue(TypedDict):
    """The fields of a task that is no longer queued."""

    head: str
    queued_at: float | None
    conflict: str
    favours: str


SENT_BACK: OutOfQueue = {"head": "", "queued_at": None, "conflict": "", "favours": ""}
"""The fields of a task that leaves the queue for more work."""
