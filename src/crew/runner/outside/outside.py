"""The protocol of the doers to the outside; the local machine and the simulator implement it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from crew.agents.adapter import Controls
from crew.domain.kernel.frozen import frozen
from crew.domain.merging.conflict_text import Sides
from crew.domain.merging.merge_reports import Delivered, MergeResult, Rewrite, Signed, Tips
from crew.domain.quests.brief import Brief
from crew.domain.quests.item_tasks import ItemTask
from crew.domain.rows.channel import Channel, Member, Post
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.message import Message
from crew.domain.rows.run import Run
from crew.domain.rows.step import StepOutcome
from crew.domain.rows.task import Task
from crew.domain.rows.task_item import TaskItem
from crew.domain.rows.terminal import Terminal
from crew.domain.rows.workflow import Role
from crew.domain.runs.gate import GateResult
from crew.domain.runs.lost_sides import LostSide
from crew.domain.runs.questions import LiveQuestion
from crew.domain.runs.verdicts import Review
from crew.domain.terminals.dialogs import TerminalInput
from crew.domain.terminals.terminal_outcomes import Opened


@frozen
class WorkSeen:
    """The content of a task's worktree.

    `nested` are the paths of nested repositories, which a commit cannot contain. `unpushed` are
    submodules, each with its commit, which exists only in this worktree. `off_head` are
    commits of the task's branch that are not in what is checked out. `refused` is why git refuses
    the commits; nothing else is known then.
    """

    head: str
    uncommitted: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    unpushed: tuple[str, ...] = ()
    off_head: tuple[str, ...] = ()
    refused: str = ""


@frozen
class StepCall:
    """A step that a doer orders; `resume`: its session may exist already.

    `heard` is called with each message that the agent received, `asked` waits for a person's
    answer, and `controls` sends messages to the running step. `role` is the acting role of a quest,
    and `brief` the text that this role gets about the quest.
    """

    run: Run
    task: Task
    resume: bool
    started: Callable[[int], None]
    doing: Callable[[str], None]
    messages: tuple[Message, ...] = ()
    heard: Callable[[str], None] = lambda _message: None
    asked: Callable[[LiveQuestion], Awaitable[str]] | None = None
    controls: Controls | None = None
    role: Role | None = None
    brief: Brief | None = None


@frozen
class ReviewCall:
    """A review that a doer orders; `messages`, `heard` and `controls` are as for a step."""

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
    """A turn in a channel that a doer orders; `resume` is as for a step.

    `posts` are those that the member has not been given yet, `before` returns all earlier ones, for
    an agent without a session. `was_cut_off`: an earlier step of the member was interrupted.
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
    """Git, agents, gates and task sources; each call is safe to repeat."""

    async def tips(self, target: str) -> Tips: ...

    async def contains(self, *, ancestor: str, descendant: str) -> bool: ...

    async def ensure_worktree(self, task: Task, *, branch: str, base: str) -> str:
        """The path of the task's worktree, made from its branch, its last checkpoint or `base`."""

    def foresee(self, targets: tuple[str, ...]) -> None:
        """Tasks of these targets start next: their worktrees may be prepared ahead."""

    async def has_worktree(self, task: Task) -> bool: ...

    async def clear_locks(self, task: Task) -> None:
        """Remove git's locks that processes left in the task's worktree when they ended.

        Raises if the worktree's disk is full, on which neither an agent nor a gate could work.
        Call it only when no process that crew started for the task is alive.
        """

    async def look_at(self, task: Task) -> WorkSeen | None:
        """The content of the worktree; None if it does not exist."""

    async def refusal_of_commit(self, task: Task) -> str:
        """What git says if it refuses to commit what is uncommitted; tried without an effect."""

    async def said_done(self, run: Run) -> bool:
        """Whether the log of the run's last attempt has the word that ends the work."""

    async def run_step(self, call: StepCall) -> StepOutcome: ...

    async def checkpoint(self, task: Task, label: str, *, is_last: bool = False) -> None:
        """Keep everything in the worktree under a hidden ref; do nothing without a worktree.

        The locks that dead processes left there are removed first, as by `clear_locks`. `is_last`:
        the worktree is removed next, so files that git ignores are kept too.
        """

    async def remove_worktree(self, task: Task) -> None: ...

    async def delete_branch(self, task: Task) -> None: ...

    async def run_gate(self, commit: str, *, task: str, command: str = "") -> GateResult:
        """Run the repository's gate, or another command, on exactly this commit."""

    async def open_terminal(
        self, terminal: Terminal, run: Run, task: Task, *, session: str
    ) -> Opened:
        """Open the terminal of a run, or find the open one."""

    async def type_into_terminal(
        self, terminal: Terminal, run: Run, task: Task, messages: tuple[Message, ...]
    ) -> TerminalInput | None:
        """Type into the terminal why the work came back, and messages; None without a terminal.

        The result is what the terminal took before; nothing is typed unless it took text.
        """

    async def choose_in_terminal(self, terminal: Terminal, choice: str) -> None:
        """Enter a choice in the terminal's dialog; do nothing if it does not offer that choice."""

    async def close_terminal(self, terminal: Terminal) -> None:
        """End a terminal and every process in it; do nothing if there is none."""

    async def review(self, call: ReviewCall) -> Review:
        """Have a commit reviewed, and keep the reviewer's notes as a comment of the task."""

    async def lost_sides(self, run: Run, *, head: str) -> tuple[LostSide, ...]: ...

    async def only_merged(self, *, before: str, head: str, landed: str) -> bool:
        """Whether `head` adds nothing to `before` but merges of what landed, resolved."""

    async def conflict_sides(self, *, ours: str, theirs: str, paths: tuple[str, ...]) -> Sides:
        """What each side of a conflict changed, for the agent whose work is `ours`."""

    async def merge(
        self, *, onto: str, head: str, message: str, at: float, favours: str = ""
    ) -> MergeResult:
        """Merge in memory; the same call makes the same commit again.

        `favours` is the side that wins where both changed the same lines: `mine` (the head) or
        `theirs`.
        """

    async def merge_target(self, tips: Tips, target: str) -> MergeResult:
        """Merge commits that others made on the target into the integration tip."""

    async def signed(self, commits: tuple[str, ...], *, count: int) -> Signed:
        """Sign the first `count` of these merges, each made on the one before it, if configured.

        The others are made again on the signed ones.
        """

    async def advance(self, target: str, *, to: str, expected: str) -> None:
        """Move the integration ref, unless another process moved it."""

    async def deliver(
        self, target: str, *, landed: frozenset[str], last_seen: str | None
    ) -> Delivered:
        """Move the target to the integration ref, if that is at one of these commits.

        It is not moved if it lacks `last_seen`, or something else that a person took out of it. A
        branch of crew itself has None.
        """

    async def supersede(
        self,
        queue: MergeQueue,
        *,
        was: str,
        now: str,
        delivered: Sequence[Task],
        waiting: Sequence[Task],
    ) -> Rewrite:
        """Let landings start from the target as a person rewrote it, from `was` to `now`.

        What the target lacks stays under a ref. `waiting` landed, and wait for their delivery: the
        branches of these tasks are there again afterwards.
        """

    async def rename_target(self, old: str, new: str) -> None:
        """Move what crew keeps about a target to the name that a person gave it."""

    async def replay(
        self, head: str, *, onto: str, queue: MergeQueue, favours: str = ""
    ) -> MergeResult:
        """The work itself on another commit, without what people took out of its target."""

    async def write_task(self, task: Task) -> None: ...

    async def tell_step(self, step: ItemTask) -> TaskItem:
        """Write a planned item as a task, or update the task that exists; returns it."""

    async def speak(self, call: TurnCall) -> StepOutcome:
        """Run one step of a channel's member, in a worktree of its own that it only reads."""

    async def vacate(self, member: Member) -> None:
        """Remove a member's worktree; do nothing if there is none."""
