"""The outside on this machine: real git, real processes, the task source of this repository."""

import contextlib
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from crew.agents.adapter import adapter_for
from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.names import landed_ref
from crew.domain.merging.conflict_text import Sides
from crew.domain.merging.merge_reports import Delivered, MergeResult, Rewrite, Signed, Tips
from crew.domain.quests.item_tasks import ItemTask
from crew.domain.rows.channel import Member
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.message import Message
from crew.domain.rows.run import Run
from crew.domain.rows.step import StepOutcome
from crew.domain.rows.task import Task, TaskState
from crew.domain.rows.task_item import TaskItem
from crew.domain.rows.terminal import Terminal
from crew.domain.runs.gate import GateResult
from crew.domain.runs.lost_sides import LostSide
from crew.domain.runs.verdicts import Review
from crew.domain.terminals.dialogs import TerminalInput
from crew.domain.terminals.terminal_outcomes import Opened
from crew.git.branches import claim_branch
from crew.git.checkpoints import checkpoints
from crew.git.delivery import delivery, rewrites
from crew.git.delivery.deleted_targets import is_persons
from crew.git.delivery.landed_refs import integration_tip
from crew.git.git_command import git
from crew.git.killed_remains import clear_crews_locks, sweep_half_made
from crew.git.merges import merges
from crew.git.merges.conflict_sides import conflict_sides, dropped_sides
from crew.git.merges.own_changes import only_merged
from crew.git.merges.signing import CannotSign, sign_merges
from crew.git.refs import advance
from crew.git.repository import has_branch, ref_tip
from crew.git.task_repository.shown_branches import is_newest_shown, show_newest
from crew.git.worktrees import worktree_admin, worktrees
from crew.git.worktrees.spare_worktrees import Spare
from crew.git.worktrees.worktree_list import delete_made_branch
from crew.runner.outside.asking_watch import asking_watch
from crew.runner.outside.commit_trial import refusal_of_commit
from crew.runner.outside.gate_runs import GateRuns
from crew.runner.outside.member_steps import ChannelPlaces
from crew.runner.outside.outside import ReviewCall, StepCall, TurnCall, WorkSeen
from crew.runner.outside.plan_items import PlannedTasks
from crew.runner.outside.review_runs import Reviews
from crew.runner.outside.spare_pool import Spares
from crew.runner.outside.terminals import TaskTerminals
from crew.runner.outside.work_seen import is_worktree, look_at_work
from crew.runner.outside.worktree_care import LOCK_PATIENCE_S, WorktreeCare
from crew.runner.outside.worktree_setup import furnish, worker_settings
from crew.runner.prompts.mcp_connection import url_variables
from crew.runner.prompts.step_orders import (
    agent_settings,
    agent_spec,
    answer_first_questions,
    step_order,
)
from crew.runner.prompts.step_prompt import Seen, instructions, step_prompt
from crew.runner.prompts.task_text import read_seen, seen_at_once
from crew.runner.sandbox.confinement import with_rights
from crew.runner.views.step_log import note_left_out, note_messages, says_done, start_step
from crew.system.bounded_log import MIB
from crew.system.full_disk import refuse_full_disk
from crew.system.threads import in_thread
from crew.tasks.task_source import NewComment
from crew.workplace import Workplace

log = logging.getLogger(__name__)


@dataclass(slots=True)
class LocalOutside:
    workplace: Workplace
    mcp_url: str = ""
    gates: GateRuns = field(init=False)
    terminals: TaskTerminals = field(init=False)
    reviews: Reviews = field(init=False)
    spares: Spares = field(init=False)
    channels: ChannelPlaces = field(init=False)
    planned: PlannedTasks = field(init=False)
    care: WorktreeCare = field(init=False)
    _contained: dict[tuple[str, str], bool] = field(default_factory=dict)
    _parents: dict[str, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.workplace.expect_sandbox()
        self.gates = GateRuns(workplace=self.workplace)
        self.terminals = TaskTerminals(self.workplace)
        self.reviews = Reviews(self.workplace)
        self.spares = Spares(workplace=self.workplace)
        self.channels = ChannelPlaces(self.workplace)
        self.planned = PlannedTasks(self.workplace.source)
        self.care = WorktreeCare(self.workplace.repo)

    async def tips(self, target: str) -> Tips:
        return await in_thread(self._tips, target)

    def _tips(self, target: str) -> Tips:
        """The tips of a target; the integration ref is made if it is missing."""
        branch = ref_tip(self.workplace.repo, f"refs/heads/{target}")
        if branch is None and (name := rewrites.renamed(self.workplace.repo, target)):
            tip = ref_tip(self.workplace.repo, f"refs/heads/{name}") or ""
            landed = ref_tip(self.workplace.repo, landed_ref(target)) or tip
            return Tips(
                integration=landed,
                target=landed,
                has_target=False,
                renamed_to=name,
                renamed_tip=tip,
            )
        integration = integration_tip(self.workplace.repo, target)
        return Tips(
            integration=integration, target=branch or integration, has_target=branch is not None
        )

    async def contains(self, *, ancestor: str, descendant: str) -> bool:
        """Whether a commit contains another; the answer never changes, so it is remembered."""
        if ancestor == descendant:
            return True
        asked = (ancestor, descendant)
        if asked not in self._contained:
            self._contained[asked] = self._is_known_in(ancestor, descendant) or await in_thread(
                merges.contains, self.workplace.repo, ancestor=ancestor, descendant=descendant
            )
        return self._contained[asked]

    def _is_known_in(self, ancestor: str, descendant: str) -> bool:
        """Whether merges made by this process prove it, without calling git; False if unknown."""
        seen, left = set[str](), [descendant]
        while left:
            commit = left.pop()
            if commit == ancestor:
                return True
            if commit not in seen:
                seen.add(commit)
                left += self._parents.get(commit, ())
        return False

    async def ensure_worktree(self, task: Task, *, branch: str, base: str) -> str:
        path = self.workplace.worktrees / task.id
        is_new = not path.exists()
        spare = await self.spares.take(base) if is_new and not task.branch else None
        await in_thread(self._ensure_worktree, task, path, branch, base, spare)
        if spare is not None and spare.files.exists():
            self.spares.give_back(spare)
        settings = worker_settings(self.workplace, task)
        await furnish(self.workplace, task, path, settings, is_new=is_new)
        return str(path)

    def _ensure_worktree(
        self, task: Task, path: Path, branch: str, base: str, spare: Spare | None
    ) -> None:
        repo = self.workplace.repo
        is_new = not task.branch and claim_branch(repo, branch, base=base)
        head = worktrees.ensure_worktree(
            repo,
            path,
            branch=branch,
            base=base,
            is_new=is_new,
            spare=spare,
            kind=self.workplace.worktree_kind,
        )
        self.care.repair(path, branch)
        if not task.worktree and not is_new:  # a new branch has no work that could be lost
            self._bring_back(task, path, head)

    def _bring_back(self, task: Task, path: Path, head: str) -> None:
        """Restore the last checkpoint into a worktree that was lost; repeatable."""
        repo = self.workplace.repo
        kept = checkpoints.checkpoints(repo, task.id)
        if kept and kept[-1].parent == head:
            with contextlib.suppress(Conflict):  # files exist already: it was not lost
                checkpoints.restore_into_worktree(repo, path, kept[-1].commit)

    async def has_worktree(self, task: Task) -> bool:
        return bool(task.worktree) and is_worktree(self.workplace, self.workplace.worktree_of(task))

    async def clear_locks(self, task: Task) -> None:
        path = self.workplace.worktree_of(task)
        if task.worktree:
            refuse_full_disk(path)
        if task.worktree and not self.care.is_in_order(path, task.branch):
            await in_thread(self.care.repair, path, task.branch)

    async def look_at(self, task: Task) -> WorkSeen | None:
        return await in_thread(look_at_work, self.workplace, task)

    async def refusal_of_commit(self, task: Task) -> str:
        return await refusal_of_commit(self.workplace, task)

    async def said_done(self, run: Run) -> bool:
        word = run.done_word or self.workplace.rules.done_word
        log, step = self.workplace.task_log(run.task), f"{run.step_key}/{run.attempt}"
        return await in_thread(says_done, log, word, step=step)

    async def run_step(self, call: StepCall) -> StepOutcome:
        workplace = self.workplace
        path = workplace.worktree_of(call.task)
        self.care.forget(path)
        seen = seen_at_once(workplace, call)
        if seen is None or not is_newest_shown(workplace.repo, path, call.task.target):
            seen = await in_thread(self._made_ready, call)
        order = step_order(workplace, call, step_prompt(workplace, call, seen))
        settings = agent_settings(workplace, call.run.agent_kind)
        rules = instructions(workplace, call, seen)
        spec = agent_spec(workplace, settings, rules, model=call.run.model)
        order = replace(order, env={**order.env, **url_variables(workplace, self.mcp_url)})
        order = with_rights(workplace, order, settings)
        start_step(order.log, agent=order.agent, step=order.key.partition("/")[2])
        note_messages(order.log, (one.id for one in call.messages))
        watch = asking_watch(call, log=order.log, asks_permission=settings.permissions == "ask")
        outcome = await adapter_for(spec).run_step(order, watch, call.controls)
        if outcome.error is not None:
            refuse_full_disk(path)  # no fault of the agent, which works on as after a kill
        return outcome

    def _made_ready(self, call: StepCall) -> Seen:
        """Do all disk work of a step's start that may take long, in one call of a thread."""
        run, task = call.run, call.task
        path = self.workplace.worktree_of(task)
        show_newest(self.workplace.repo, path, task.target)
        if not call.resume:
            answer_first_questions(self.workplace, run.agent_kind, path)
        return read_seen(self.workplace, call)

    async def checkpoint(self, task: Task, label: str, *, is_last: bool = False) -> None:
        """Take a checkpoint; not of an empty worktree, whose last checkpoint has the work."""
        if task.worktree and not worktree_admin.is_bare_of_files(self.workplace.worktree_of(task)):
            await in_thread(self._checkpoint, task, label, is_last=is_last)

    def _checkpoint(self, task: Task, label: str, *, is_last: bool) -> None:
        """Keep the worktree. Large files without a commit are kept by the last checkpoint only."""
        path = self.workplace.worktree_of(task)
        repaired = self.care.repair(path, task.branch)
        kept = checkpoints.take_checkpoint(
            self.workplace.repo,
            path,
            task.id,
            label=label,
            at=time.time(),
            with_ignored=is_last,
            max_bytes=None if is_last else self.workplace.settings.worktree.checkpoint_max_mb * MIB,
            is_taken_in=repaired.is_taken_in,
        )
        if repaired.has_no_locks:
            self.care.note_order(path, task.branch)
        if kept is not None and kept.notes.left_out:
            note_left_out(self.workplace.task_log(task.id), kept.notes.left_out)

    async def remove_worktree(self, task: Task) -> None:
        if task.worktree:
            path = self.workplace.worktree_of(task)
            await in_thread(worktrees.remove_worktree, self.workplace.repo, path)

    async def delete_branch(self, task: Task) -> None:
        await in_thread(self._delete_branch, task)

    def _delete_branch(self, task: Task) -> None:
        """Delete a task's branch if all its commits have landed."""
        if task.branch and self._has_landed(task):
            delete_made_branch(self.workplace.repo, task.branch)

    def _has_landed(self, task: Task) -> bool:
        """Whether nothing of the branch is missing in the target. A deleted one has nothing.

        Work that was replayed landed with other commits than those of its branch.

        After a person deleted the target too, other branches of the person must have it.
        """
        repo, target = self.workplace.repo, task.target
        head = ref_tip(repo, f"refs/heads/{task.branch}")
        if head is None:
            return True
        if not has_branch(repo, target) and ref_tip(repo, landed_ref(target)) is None:
            return is_persons(repo, head)
        tip = integration_tip(repo, target)
        landed = task.landed_commit if head == task.head else head
        return self._is_known_in(landed, tip) or merges.contains(
            repo, ancestor=landed, descendant=tip
        )

    async def run_gate(self, commit: str, *, task: str, command: str = "") -> GateResult:
        return await self.gates.run(commit, task=task, command=command)

    async def open_terminal(
        self, terminal: Terminal, run: Run, task: Task, *, session: str
    ) -> Opened:
        self.care.forget(self.workplace.worktree_of(task))
        item = await in_thread(self.workplace.source.show, task.id)
        return await in_thread(self.terminals.open, terminal, run, task, item, session=session)

    async def type_into_terminal(
        self, terminal: Terminal, run: Run, task: Task, messages: tuple[Message, ...]
    ) -> TerminalInput | None:
        return await in_thread(self.terminals.type_into, terminal, run, task, messages)

    async def choose_in_terminal(self, terminal: Terminal, choice: str) -> None:
        await in_thread(self.terminals.choose, terminal, choice)

    async def close_terminal(self, terminal: Terminal) -> None:
        await in_thread(self.terminals.close, terminal)

    async def review(self, call: ReviewCall) -> Review:
        return await self.reviews.run(call)

    async def speak(self, call: TurnCall) -> StepOutcome:
        return await self.channels.speak(call, mcp_url=self.mcp_url)

    async def vacate(self, member: Member) -> None:
        await self.channels.vacate(member)

    def foresee(self, targets: tuple[str, ...]) -> None:
        self.spares.foresee(targets)

    def sweep(self) -> None:
        """Remove what a killed runner left behind."""
        self.reviews.tidy()
        self.spares.tidy()
        repo = self.workplace.repo
        clear_crews_locks(repo, patience_s=LOCK_PATIENCE_S)
        sweep_half_made(repo, self.workplace.worktrees)

    async def tidy(self) -> None:
        """Remove what is no longer used; gates come last, since they remove the folder."""
        await self.spares.end()
        await in_thread(self.reviews.tidy)
        await in_thread(self.gates.tidy)

    async def lost_sides(self, run: Run, *, head: str) -> tuple[LostSide, ...]:
        return await in_thread(
            dropped_sides,
            self.workplace.repo,
            ours=run.merge_head,
            theirs=run.merge_commit,
            result=head,
        )

    async def only_merged(self, *, before: str, head: str, landed: str) -> bool:
        return await in_thread(
            only_merged, self.workplace.repo, before=before, head=head, landed=landed
        )

    async def conflict_sides(self, *, ours: str, theirs: str, paths: tuple[str, ...]) -> Sides:
        return await in_thread(
            conflict_sides, self.workplace.repo, ours=ours, theirs=theirs, paths=paths
        )

    async def merge(
        self, *, onto: str, head: str, message: str, at: float, favours: str = ""
    ) -> MergeResult:
        return await in_thread(self._merge, onto, head, message=message, at=at, favours=favours)

    def _merge(
        self,
        onto: str,
        head: str,
        *,
        message: str,
        at: float,
        favours: str = "",
        is_persons: bool = False,
    ) -> MergeResult:
        done = merges.merge(
            self.workplace.repo,
            onto=onto,
            head=head,
            message=message,
            at=at,
            favours=favours,
            is_persons=is_persons,
        )
        if isinstance(done, merges.Merged):
            self._parents[done.commit] = (onto, head)
            return MergeResult(commit=done.commit)
        if isinstance(done, merges.Unmergeable):
            return MergeResult(refused=done.reason)
        return MergeResult(conflicts=done.paths, detail=done.detail)

    async def merge_target(self, tips: Tips, target: str) -> MergeResult:
        """Merge the target; it has the date of the newer commit, so a repeat makes the same one."""
        at = await in_thread(self._newest, tips)
        message = f"Merge {target} into what crew landed\n"
        return await in_thread(
            self._merge, tips.integration, tips.target, message=message, at=at, is_persons=True
        )

    def _newest(self, tips: Tips) -> float:
        dates = git(
            self.workplace.repo.root,
            *("log", "--no-walk", "--format=%ct", tips.integration, tips.target),
        )
        return max(float(date) for date in dates.split())

    async def signed(self, commits: tuple[str, ...], *, count: int) -> Signed:
        if not self.workplace.settings.merge.sign:
            return Signed()
        try:
            placed = await in_thread(sign_merges, self.workplace.repo, commits, count=count)
        except CannotSign as locked:
            return Signed(problem=locked.message, remedy=locked.hint)
        for old, new in placed.items():
            if known := self._parents.get(old):
                self._parents[new] = (placed.get(known[0], known[0]), known[1])
        return Signed(placed=tuple(placed.items()))

    async def advance(self, target: str, *, to: str, expected: str) -> None:
        await in_thread(advance, self.workplace.repo, landed_ref(target), to=to, expected=expected)

    async def deliver(
        self, target: str, *, landed: frozenset[str], last_seen: str | None
    ) -> Delivered:
        done = await in_thread(
            delivery.deliver, self.workplace.repo, target, landed=landed, last_seen=last_seen
        )
        return Delivered(**asdict(done))

    async def supersede(
        self,
        queue: MergeQueue,
        *,
        was: str,
        now: str,
        delivered: Sequence[Task],
        waiting: Sequence[Task],
    ) -> Rewrite:
        landed = {one.id: one.landed_commit for one in delivered}
        superseded = await in_thread(
            rewrites.supersede,
            self.workplace.repo,
            queue.id,
            now=now,
            removed=(queue.superseded, was),
            landed=queue.integration,
            branches={one.branch: one.head for one in waiting},
        )
        gone = await in_thread(rewrites.dropped, self.workplace.repo, landed, was=was, now=now)
        return Rewrite(now=now, superseded=superseded, dropped=gone)

    async def rename_target(self, old: str, new: str) -> None:
        await in_thread(rewrites.rename, self.workplace.repo, old, new)

    async def replay(
        self, head: str, *, onto: str, queue: MergeQueue, favours: str = ""
    ) -> MergeResult:
        removal = rewrites.Removal(
            target=queue.id,
            superseded=queue.superseded,
            given_up=queue.given_up,
            offered=queue.offered,
        )
        repo = self.workplace.repo
        done = await in_thread(
            rewrites.replay, repo, head, onto=onto, removal=removal, favours=favours
        )
        if done.conflict is None:
            return MergeResult(commit=done.commit, refused=done.refused)
        paths, detail = done.conflict.paths, done.conflict.detail
        return MergeResult(conflicts=paths, detail=detail, theirs=done.superseding)

    async def write_task(self, task: Task) -> None:
        await in_thread(self._write_task, task)

    async def tell_step(self, step: ItemTask) -> TaskItem:
        return await in_thread(self.planned.tell, step)

    def _write_task(self, task: Task) -> None:
        source = self.workplace.source
        if task.state == TaskState.CLOSED and task.close_reason:
            reason = NewComment(
                author="crew", text=f"closed: {task.close_reason}", at=time.time(), key="closed"
            )
            source.comment(task.id, reason)
        source.set_status(task.id, TaskState(task.state), at=time.time())
