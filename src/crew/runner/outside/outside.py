"""Everything the doers may ask of the outside; the local machine and the simulator provide it."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from crew.agents.adapter import Controls
from crew.domain.kernel.frozen import frozen
from crew.domain.merging.conflict_text import Sides
from crew.domain.merging.merge_reports import Delivered, MergeResult, Tips
from crew.domain.quests.brief import Brief
from crew.domain.quests.item_tasks import ItemTask
from crew.domain.rows.channel import Channel, Member, Post
from crew.domain.rows.message import Message
from crew.domain.rows.run import Run
from crew.domain.rows.step import StepOutcome
from crew.domain.rows.task import Task
from crew.domain.rows.task_item import TaskItem
from crew.domain.rows.terminal import Terminal
from crew.domain.rows.workflow import Role
from crew.domain.runs.gate import GateResult
from crew.domain.runs.verdicts import Verdict
from crew.domain.terminals.terminal_outcomes import Opened


@frozen
class WorkSeen:
    """What is in a task's worktree; `done_said` is whether the last step's log says DONE.

    `nested` are the paths of repositories in it that a commit cannot carry.
    """

    head: str
    uncommitted: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    done_said: bool = False


@frozen
class StepCall:
    """A step as the doers order it; `resume` says that the session may exist already.

    `heard` is told the message that the agent has got, `asked` waits for leave to use a tool, and
    `controls` is how somebody speaks to the step while it is under way. `role` is the one that
    acts in a quest, and `brief` what it is told of that.
    """

    run: Run
    task: Task
    resume: bool
    started: Callable[[int], None]
    doing: Callable[[str], None]
    messages: tuple[Message, ...] = ()
    heard: Callable[[str], None] = lambda _message: None
    asked: Callable[[str, str], Awaitable[bool]] | None = None
    controls: Controls | None = None
    role: Role | None = None
    brief: Brief | None = None


@frozen
class ReviewCall:
    """A review as the doers order it; `messages`, `heard` and `controls` are as for a step."""

    run: Run
    task: Task
    commit: str
    reviewer: str
    messages: tuple[Message, ...] = ()
    heard: Callable[[str], None] = lambda _message: None
    controls: Controls | None = None
    brief: Brief | None = None


@frozen
class TurnCall:
    """A turn in a channel as the doers order it; `resume` as for a step.

    `posts` is what the member has not been given yet, `before` all that was said so far, for an
    agent that remembers nothing. `was_cut_off` says that an earlier step of it never ended well.
    """

    channel: Channel
    member: Member
    posts: tuple[Post, ...]
    before: Callable[[], tuple[Post, ...]]
    was_cut_off: bool
    resume: bool
    heard: Callable[[str], None]
    controls: Controls


class Outside(Protocol):
    """git, agents, gates and task sources, each call safe to repeat."""

    async def tips(self, target: str) -> Tips: ...

    async def contains(self, *, ancestor: str, descendant: str) -> bool: ...

    async def ensure_worktree(self, task: Task, *, branch: str, base: str) -> str:
        """The path of the task's worktree, made from its branch, its last checkpoint or `base`."""

    def foresee(self, targets: tuple[str, ...]) -> None:
        """Tasks of these targets start next: what they will need may be made ahead, or not."""

    async def has_worktree(self, task: Task) -> bool: ...

    async def clear_locks(self, task: Task) -> None:
        """Remove the locks of git that ended processes have left in the task's worktree.

        Only when nothing that crew started for the task is alive there any more.
        """

    async def look_at(self, task: Task) -> WorkSeen | None:
        """What is in the worktree, or None when there is none."""

    async def run_step(self, call: StepCall) -> StepOutcome: ...

    async def checkpoint(self, task: Task, label: str, *, is_last: bool = False) -> None:
        """Keep everything in the worktree under a hidden ref; nothing, when there is none.

        `is_last`: the worktree is removed next, and what git ignores there is kept as well.
        """

    async def remove_worktree(self, task: Task) -> None: ...

    async def delete_branch(self, task: Task) -> None: ...

    async def run_gate(self, commit: str, *, task: str, command: str = "") -> GateResult:
        """The repository's gate, or another command, on exactly this commit."""

    async def open_terminal(
        self, terminal: Terminal, run: Run, task: Task, *, session: str
    ) -> Opened:
        """The terminal session of a run, made or found."""

    async def type_into_terminal(self, terminal: Terminal, run: Run, task: Task) -> bool:
        """Type why the work came back into the terminal session; false when there is none."""

    async def close_terminal(self, terminal: Terminal) -> None:
        """End a terminal session and everything that runs in it; nothing, when there is none."""

    async def review(self, call: ReviewCall) -> Verdict:
        """Have a commit reviewed, and keep what is said as a comment of the task."""

    async def lost_sides(self, run: Run, *, head: str) -> tuple[str, ...]: ...

    async def conflict_sides(self, *, ours: str, theirs: str, paths: tuple[str, ...]) -> Sides:
        """What each side of a conflict did, for the agent whose work is `ours`."""

    async def merge(
        self, *, onto: str, head: str, message: str, at: float, favours: str = ""
    ) -> MergeResult:
        """Merge in memory; the same call makes the same commit again.

        `favours` is the side that wins where both changed the same lines: `mine`, which is the
        head's, or `theirs`.
        """

    async def merge_target(self, tips: Tips, target: str) -> MergeResult:
        """Somebody else's commits on the target merged into the integration tip."""

    async def advance(self, target: str, *, to: str, expected: str) -> None:
        """Move the integration ref, unless somebody else did."""

    async def deliver(self, target: str) -> Delivered: ...

    async def write_task(self, task: Task) -> None: ...

    async def tell_step(self, step: ItemTask) -> TaskItem:
        """The task of a planned step, made or found, with what the plan says of it now."""

    async def speak(self, call: TurnCall) -> StepOutcome:
        """One step of a channel's member, in a worktree of its own that it only looks at."""

    async def vacate(self, member: Member) -> None:
        """Remove a member's worktree; nothing, when there is none."""
