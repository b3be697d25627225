"""The outside of a simulated crew: a repository in memory, agents that misbehave, faults."""

import asyncio
import functools
import operator
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from crew.domain.kernel.errors import Conflict
from crew.domain.merging.conflict_text import Hunks, Sides
from crew.domain.merging.merge_reports import Delivered, MergeResult, Rewrite, Signed, Tips
from crew.domain.quests.item_tasks import ItemTask
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.message import Message
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome, Usage
from crew.domain.rows.task import Task
from crew.domain.rows.task_item import TaskItem
from crew.domain.rows.terminal import Terminal
from crew.domain.runs.gate import GateResult
from crew.domain.runs.lost_sides import LostSide
from crew.domain.runs.verdicts import Review, Verdict
from crew.domain.terminals.dialogs import Dialog, TerminalInput
from crew.domain.terminals.terminal_outcomes import Opened
from crew.runner.outside.outside import ReviewCall, StepCall, WorkSeen
from crew.runner.outside.plan_items import PlannedTasks
from simulation.repository import Repository, Worktree


class Crashed(BaseException):
    """The runner died: nothing after this point happens in this life."""


@dataclass(frozen=True, slots=True)
class Faults:
    """How often what goes wrong; all zero once the faults stop."""

    step_error: float = 0.0
    hang: float = 0.0
    crash: float = 0.0
    flake: float = 0.0
    lost_worktree: float = 0.0
    bug: float = 0.0
    dirty: float = 0.0
    lazy: float = 0.0
    busy_checkout: float = 0.0
    person: float = 0.0
    bad_merge: float = 0.0
    late_signal: float = 0.0
    stray_edit: float = 0.0


CALM = Faults()


@dataclass(slots=True)
class State:
    """What outlives the runner."""

    rng: random.Random
    repo: Repository
    shared_files: int
    faults: Faults = CALM
    gate_passed: set[str] = field(default_factory=set)
    linked: set[str] = field(default_factory=set)  # commits with a link to a nested repository
    made: int = 0  # a mask of every commit an agent or a person made
    sessions_open: set[str] = field(default_factory=set)
    sessions_known: set[str] = field(default_factory=set)
    source: dict[str, str] = field(default_factory=dict)
    effects: int = 0
    landings: list[str] = field(default_factory=list)
    stepping: set[str] = field(default_factory=set)
    panes: "dict[str, Pane]" = field(default_factory=dict)
    dialogs: dict[str, Dialog] = field(default_factory=dict)  # by the names of terminals
    pids: int = 100
    talk: Any = None  # what agents say, in the histories in which they do
    quests: Any = None  # requests that are planned into steps, in the histories that have some
    outages: Any = None  # kinds that fail until a person acts, in the histories that have some
    rewriter: Any = None  # who rewrites main, in the histories that have such a person
    crash_at: int = 0  # the one effect at which the runner dies, in a history that is told twice


@dataclass(frozen=True, slots=True)
class Pane:
    """A terminal session; it outlives the runner."""

    run: str
    session: str
    pid: int


class SimulatedOutside:
    """One life's way to the outside; every call may be the one at which the runner dies."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.dead = False

    async def _effect(self, seconds: float = 0.01) -> None:
        """Time passes, then the runner may die: called before and after everything that changes."""
        await asyncio.sleep(self.state.rng.random() * seconds)
        self._maybe_die()

    def _maybe_die(self) -> None:
        self.state.effects += 1
        dies = self.state.effects == self.state.crash_at
        if self.dead or dies or self.state.rng.random() < self.state.faults.crash:
            self.dead = True
            raise Crashed

    def _chance(self, share: float) -> bool:
        return self.state.rng.random() < share

    async def tips(self, target: str) -> Tips:
        integration = self.state.repo.integration_of(target)
        branch = self.state.repo.tip_of(target)
        return Tips(integration=integration, target=branch or integration, has_target=bool(branch))

    async def contains(self, *, ancestor: str, descendant: str) -> bool:
        return self.state.repo.contains(ancestor, descendant)

    async def ensure_worktree(self, task: Task, *, branch: str, base: str) -> str:
        await self._effect()
        repo = self.state.repo
        found = repo.worktrees.get(task.id)
        if found is None or found.half_made:
            repo.worktrees[task.id] = Worktree(head=base, half_made=True)
            self._maybe_die()
            head = repo.branches.setdefault(branch, base)
            made = Worktree(head=head)
            if points := repo.checkpoints.get(task.id):
                last_head, last_dirty = points[-1]
                if last_head == head:
                    made.dirty = dict(last_dirty)
            repo.worktrees[task.id] = made
        self._maybe_die()
        return f"worktrees/{task.id}"

    def foresee(self, targets: tuple[str, ...]) -> None:
        """Whatever is made ahead is a file system's matter; what is asked for must make sense."""
        known = {"main", *self.state.repo.branches}
        assert set(targets) <= known, "a worktree is foreseen for no target"
        assert len(targets) <= len(self.state.source), "more is foreseen than there are tasks"

    async def has_worktree(self, task: Task) -> bool:
        found = self.state.repo.worktrees.get(task.id)
        return found is not None and not found.half_made

    async def clear_locks(self, task: Task) -> None:
        """Only once everything that worked there has ended."""
        assert task.id not in self.state.stepping, "a lock was cleared under an agent's feet"
        is_open = any(pane.run.rpartition(".")[0] == task.id for pane in self.state.panes.values())
        assert not is_open, "a lock was cleared under a terminal"
        if found := self.state.repo.worktrees.get(task.id):
            found.locked = False

    async def look_at(self, task: Task) -> WorkSeen | None:
        found = self.state.repo.worktrees.get(task.id)
        if found is None or found.half_made:
            return None
        assert not found.locked, "looked at behind a dead lock"
        nested = ("app",) if found.head in self.state.linked else ()
        return WorkSeen(head=found.head, uncommitted=tuple(sorted(found.dirty)), nested=nested)

    async def refusal_of_commit(self, task: Task) -> str:
        return ""

    async def said_done(self, _run: Run) -> bool:
        return False

    async def run_step(self, call: StepCall) -> StepOutcome:
        state, session = self.state, call.run.session
        assert session not in state.sessions_open, "two writers in one session"
        assert call.task.id in state.repo.worktrees, "a step without a worktree"
        assert not state.repo.worktrees[call.task.id].locked, "a step behind a dead lock"
        for pane in state.panes.values():
            assert pane.session != session, "an agent and a terminal in one session"
            assert pane.run != call.run.id, "an agent beside a terminal in one worktree"
        state.sessions_open.add(session)
        state.stepping.add(call.task.id)
        try:
            await self._effect()
            if call.resume and session not in state.sessions_known:
                return _error(call, ErrorKind.SESSION_UNKNOWN)
            known = session in state.sessions_known
            assert call.resume or not known, "a session was begun a second time"
            state.sessions_known.add(session)
            self._signal_started(call)
            if self.state.outages and (error := self.state.outages.error()):
                return StepOutcome(session=session, error=error)
            said = await self._said(call)
            return said or await self._work(call)
        finally:
            state.sessions_open.discard(session)
            state.stepping.discard(call.task.id)

    async def _said(self, call: StepCall) -> StepOutcome | None:
        """How the step ends by what is said in it; whoever has a role in a quest follows that."""
        if self.state.quests and call.role is not None:
            if self.state.talk:
                self.state.talk.receive(message.id for message in call.messages)
            return await self.state.quests.act(self, call)
        return await self.state.talk.speak(self, call) if self.state.talk else None

    def _signal_started(self, call: StepCall) -> None:
        """Once, as it should be; or twice, or again long after the step has ended."""
        call.started(4711)
        if self._chance(self.state.faults.late_signal):
            call.started(4712)
            later = self.state.rng.uniform(0, 100)
            asyncio.get_running_loop().call_later(later, self._late_signal, call)

    def _late_signal(self, call: StepCall) -> None:
        if not self.dead:
            call.started(4713)

    async def _work(self, call: StepCall) -> StepOutcome:
        faults = self.state.faults
        try:
            await self._effect(20.0)
        except (Crashed, asyncio.CancelledError) as end:
            if isinstance(end, Crashed) and self._chance(0.5):
                self._commit_something(call)  # its last breath, after the runner died
            if tree := self.state.repo.worktrees.get(call.task.id):
                tree.locked = True  # its git was killed in the middle of something
            raise
        if self._chance(faults.lost_worktree):
            self.state.repo.worktrees.pop(call.task.id, None)
        if self._chance(faults.hang):
            await asyncio.sleep(1800)
            return _error(call, ErrorKind.TIMEOUT)
        if self._chance(faults.step_error):
            kind = self.state.rng.choice(
                [ErrorKind.CRASHED, ErrorKind.OVERLOADED, ErrorKind.RATE_LIMIT, ErrorKind.STALLED]
            )
            self._commit_something(call)
            return _error(call, kind)
        if self._chance(faults.lazy):
            return StepOutcome(session=call.run.session, done=self._chance(0.3))
        self._commit_something(call)
        self._maybe_die()
        usage = Usage(input_tokens=10, output_tokens=1, cost_usd=0.01)
        return StepOutcome(session=call.run.session, done=not self._chance(0.3), usage=usage)

    def _commit_something(self, call: StepCall) -> None:
        repo = self.state.repo
        tree = repo.worktrees.get(call.task.id)
        if tree is None:
            return
        if self._brought_in(call, tree) and call.role is not None:
            return  # whoever is called for a conflict in a quest changes nothing else
        if _mends(call):
            self._merge_by_hand(call, tree, repo.integration_of(call.task.target))
        files = dict(repo.commits[tree.head].files)
        if call.role is not None:  # whoever mends a step mends whatever is broken there
            files = {name: _without_bugs(lines) for name, lines in files.items()}
        for name, added in tree.dirty.items():
            files[name] = files.get(name, frozenset()) | added
        tree.dirty = {}
        name = self._file_of(call.task)
        line = self._line_for(call)
        lines = {v for v in files.get(name, frozenset()) if v != f"bug {call.task.id}"}
        if call.run.ask == Ask.RED_GATE or _mends(call):
            lines.add("peace")
        if self._chance(self.state.faults.dirty):
            tree.dirty = {name: frozenset({line})}
            return
        files[name] = frozenset({*lines, line})
        self._committed(call, tree, files, (tree.head,))

    def _brought_in(self, call: StepCall, tree: Worktree) -> bool:
        """Whether there was a conflict to resolve; an agent may merge badly, or not at all."""
        other = call.run.merge_commit
        if not other or self.state.repo.contains(other, tree.head):
            return False
        self._merge_by_hand(call, tree, other)
        return True

    def _merge_by_hand(self, call: StepCall, tree: Worktree, other: str) -> None:
        repo = self.state.repo
        if self._chance(self.state.faults.bad_merge) or repo.contains(other, tree.head):
            return
        ours, theirs = repo.commits[tree.head].files, repo.commits[other].files
        both = {n: ours.get(n, frozenset()) | theirs.get(n, frozenset()) for n in {*ours, *theirs}}
        if self.state.rewriter:  # lines that a side removed stay out, as in a merge by git
            base = repo.base_of(tree.head, other)
            none = frozenset()
            gone = {n: old - (ours.get(n, none) & theirs.get(n, none)) for n, old in base.items()}
            both = {n: lines - gone.get(n, frozenset()) for n, lines in both.items()}
        self._committed(call, tree, both, (tree.head, other))

    def _committed(self, call: StepCall, tree: Worktree, files: dict, parents: tuple) -> None:
        made = self.state.repo.commit(files, parents, salt=call.task.id)
        tree.head = made
        self.state.repo.branches[call.task.branch] = made
        self.state.made |= 1 << self.state.repo.commits[made].number
        if self.state.faults.dirty and self.state.effects % 7 == 0:
            self.state.linked.add(made)

    def _file_of(self, task: Task) -> str:
        return f"file{int(task.id) % self.state.shared_files}"

    def _line_for(self, call: StepCall) -> str:
        number = int(call.task.id)
        if self._chance(self.state.faults.bug):
            return f"bug {call.task.id}"
        return f"pair {number}" if number % 5 == 0 else f"line {call.task.id}"

    async def checkpoint(self, task: Task, label: str, *, is_last: bool = False) -> None:
        await self.clear_locks(task)
        await self._effect()
        tree = self.state.repo.worktrees.get(task.id)
        if tree is not None and not tree.half_made:
            assert not tree.locked, "kept behind a dead lock"
            self.state.repo.keep(task.id, tree)
        self._maybe_die()

    async def remove_worktree(self, task: Task) -> None:
        await self._effect()
        tree = self.state.repo.worktrees.get(task.id)
        if tree is not None and not tree.half_made:
            kept = self.state.repo.checkpoints.get(task.id, [])
            assert not tree.dirty or (tree.head, tree.dirty) in kept, "dirty work thrown away"
            tree.half_made = True
            self._maybe_die()
        self.state.repo.worktrees.pop(task.id, None)
        self._maybe_die()

    async def delete_branch(self, task: Task) -> None:
        await self._effect()
        repo = self.state.repo
        head = repo.branches.get(task.branch)
        landed = task.landed_commit if head == task.head else head
        if head is not None and repo.contains(landed, repo.integration_of(task.target)):
            del repo.branches[task.branch]
            repo.landed.pop(task.branch, None)
        self._maybe_die()

    async def run_gate(self, commit: str, *, task: str) -> GateResult:
        await self._effect(10.0)
        self._maybe_rewritten()
        self._stray_edit(task)
        green = self.state.repo.is_green(commit)
        if green and self._chance(self.state.faults.flake):
            return GateResult(passed=False, output="a flake")
        if green:
            self.state.gate_passed.add(commit)
        return GateResult(passed=green, output="" if green else "red")

    def _stray_edit(self, task: str) -> None:
        """Somebody writes into a worktree whose agent is done with it."""
        tree = self.state.repo.worktrees.get(task)
        if tree is not None and self._chance(self.state.faults.stray_edit):
            tree.dirty = {**tree.dirty, "stray": frozenset({f"note {self.state.effects}"})}

    async def open_terminal(
        self, terminal: Terminal, run: Run, task: Task, *, session: str
    ) -> Opened:
        """The session of a run, made or found; nobody else writes where it does."""
        await self._effect()
        state = self.state
        found = state.panes.get(terminal.name)
        if found is None:
            assert session not in state.sessions_open, "two writers in one session"
            assert task.id not in state.stepping, "a terminal beside an agent in one worktree"
            assert task.id in state.repo.worktrees, "a terminal without a worktree"
            state.sessions_known.add(session)
            state.pids += 1
            found = state.panes[terminal.name] = Pane(run=run.id, session=session, pid=state.pids)
        assert found.run == run.id, "the session of another run"
        self._maybe_die()
        return Opened(pid=found.pid, started=1)

    async def type_into_terminal(
        self, terminal: Terminal, run: Run, task: Task, messages: tuple[Message, ...]
    ) -> TerminalInput | None:
        """Whatever comes back to a terminal is for the run that sits there; a dialog gets none."""
        await self._effect()
        found = self.state.panes.get(terminal.name)
        assert found is None or found.run == run.id, "words for another run's terminal"
        assert terminal.untyped or messages, "there is nothing to type"
        assert not terminal.dialog, "words for a dialog that is known"
        dialog = self.state.dialogs.get(terminal.name)
        if self.state.talk and found and not dialog:
            self.state.talk.receive(message.id for message in messages)
        self._maybe_die()
        return TerminalInput(takes_text=not dialog, dialog=dialog) if found else None

    async def choose_in_terminal(self, terminal: Terminal, choice: str) -> None:
        await self._effect()
        dialog = self.state.dialogs.get(terminal.name)
        if dialog and choice in dialog.choices:
            del self.state.dialogs[terminal.name]
        self._maybe_die()

    async def close_terminal(self, terminal: Terminal) -> None:
        await self._effect()
        found = self.state.panes.get(terminal.name)
        assert found is None or found.run == terminal.id, "the session of another run was closed"
        self.state.panes.pop(terminal.name, None)
        self.state.dialogs.pop(terminal.name, None)
        self._maybe_die()

    async def review(self, call: ReviewCall) -> Review:
        if self.state.talk:
            self.state.talk.receive(message.id for message in call.messages)
        await self._effect(10.0)
        if self.state.outages and (error := self.state.outages.error()):
            return Review(reviewer=call.reviewer, error=error, usage=Usage(cost_usd=None))
        passed = not self._chance(self.state.faults.flake)
        name = call.reviewer
        found = Verdict(commit=call.commit, reviewer=name, passed=passed, notes="hm")
        return Review(reviewer=name, verdict=found)

    def work(self, call: StepCall) -> None:
        """Somebody works at a terminal, and sometimes loses the ground under their feet."""
        if self._chance(self.state.faults.lost_worktree):
            self.state.repo.worktrees.pop(call.task.id, None)
        self._commit_something(call)

    async def lost_sides(self, run: Run, *, head: str) -> tuple[LostSide, ...]:
        return ()

    async def only_merged(self, *, before: str, head: str, landed: str) -> bool:
        commits = self.state.repo.commits
        new = commits[head].above & ~commits[before].above & ~commits[landed].above
        own = [one for one in commits.values() if new >> one.number & 1]
        return self.state.repo.contains(before, head) and all(one.is_merge for one in own)

    async def conflict_sides(self, *, ours: str, theirs: str, paths: tuple[str, ...]) -> Sides:
        await self._effect(0.1)
        return Sides(base=ours, hunks=tuple(Hunks(path, "<<<<<<<") for path in paths))

    async def merge(
        self, *, onto: str, head: str, message: str, at: float, favours: str = ""
    ) -> MergeResult:
        assert not self.state.repo.contains(head, onto), "merged a second time"
        assert head not in self.state.linked, "a link to a nested repository is merged"
        salt = f"{message} {at}"
        commit, conflicts = self.state.repo.merge(onto, head, salt=salt, is_settled=bool(favours))
        return MergeResult(commit=commit, conflicts=conflicts)

    async def merge_target(self, tips: Tips, target: str) -> MergeResult:
        commit, conflicts = self.state.repo.merge(tips.integration, tips.target, salt="upstream")
        return MergeResult(commit=commit, conflicts=conflicts)

    async def signed(self, commits: tuple[str, ...], *, count: int) -> Signed:
        return Signed()

    async def advance(self, target: str, *, to: str, expected: str) -> None:
        await self._effect()
        self._maybe_rewritten()
        repo = self.state.repo
        if repo.integration_of(target) != expected:
            raise Conflict("the ref is elsewhere", hint="look again")
        was_there = to == repo.tip_of(target) or to in repo.been
        proven = to in self.state.gate_passed or was_there
        assert proven, "landed without a green gate"
        repo.land(target, to)
        self.state.landings.append(to)
        self._maybe_die()

    def _maybe_rewritten(self) -> None:
        if self.state.rewriter:
            self.state.rewriter.maybe()

    async def supersede(
        self,
        queue: MergeQueue,
        *,
        was: str,
        now: str,
        delivered: Sequence[Task],
        waiting: Sequence[Task],
    ) -> Rewrite:
        repo = self.state.repo
        assert queue.id == "main", "crew's own branches are not a person's to rewrite"
        await self._effect()
        removed = tuple(filter(None, (queue.superseded, was)))
        made = repo.commit(repo.commits[now].files, (now, *removed), salt="superseding")
        repo.kept_apart |= {made, queue.integration}
        self._maybe_die()
        for task in waiting:
            repo.branches.setdefault(task.branch, task.head)
        repo.land(queue.id, now)
        self._maybe_die()
        gone = [task for task in delivered if self._is_gone(task, was, now)]
        dropped = tuple((task.id, task.landed_commit) for task in gone)
        return Rewrite(now=now, superseded=made, dropped=dropped)

    def _is_gone(self, task: Task, was: str, now: str) -> bool:
        repo = self.state.repo
        landed = repo.commits[task.landed_commit]
        if repo.contains(landed.id, now):
            return False
        before = repo.lines(landed.parents[0]) if landed.parents else set()
        own = (repo.lines(landed.id) - before) & repo.lines(was)
        return len(own & repo.lines(now)) * 2 < len(own)

    async def replay(
        self, head: str, *, onto: str, queue: MergeQueue, favours: str = ""
    ) -> MergeResult:
        repo = self.state.repo
        others = (repo.without(head, one) for one in queue.given_up)
        merged = (one for one in queue.offered if repo.contains(one, head))
        parts = (onto, queue.superseded, *filter(None, others), *merged)
        removed = functools.reduce(operator.or_, (repo.commits[one].above for one in parts))
        if not repo.commits[head].above & removed & ~repo.commits[onto].above:
            return MergeResult(commit=head)
        whole = repo.commit(repo.commits[onto].files, parts, salt="superseding")
        repo.kept_apart.add(whole)
        if repo.contains(head, whole):
            return MergeResult(commit=onto)
        made, conflicts = repo.merge(whole, head, salt="a trial", is_settled=bool(favours))
        if conflicts:
            return MergeResult(conflicts=conflicts, theirs=whole)
        return MergeResult(commit=repo.commit(repo.commits[made].files, (onto,), salt=head))

    async def deliver(
        self, target: str, *, landed: frozenset[str], last_seen: str | None
    ) -> Delivered:
        await self._effect(0.5)
        if target != "main":
            return self._deliver_to_branch(target)
        repo = self.state.repo
        self._maybe_rewritten()
        if last_seen and not repo.contains(last_seen, repo.target):
            return Delivered(state="rewritten", commit=last_seen)
        line = (one for one in repo.first_side(repo.integration) if one in repo.been)
        been = next(line, "")
        if been and not repo.contains(been, repo.target):
            return Delivered(state="rewritten", commit=been)
        if self._chance(self.state.faults.person):
            self._person_commits()
        if repo.contains(repo.integration, repo.target):
            return Delivered(state="current", commit=repo.target)
        if not repo.contains(repo.target, repo.integration):
            return Delivered(state="diverged")
        if self._chance(self.state.faults.busy_checkout):
            return Delivered(state="waiting", reason="a file is being edited", remedy="commit it")
        tip = repo.integration
        repo.move_target(tip)
        self._maybe_rewritten()
        self._maybe_die()
        return Delivered(state="delivered", commit=tip)

    def _deliver_to_branch(self, target: str) -> Delivered:
        """Nobody has a quest's branch checked out but the quest itself."""
        repo = self.state.repo
        tip, landed = repo.branches[target], repo.integration_of(target)
        if repo.contains(landed, tip):
            return Delivered(state="current", commit=tip)
        if not repo.contains(tip, landed):
            return Delivered(state="diverged")
        tree = repo.worktrees.get(target.removeprefix("crew-"))
        if tree is not None and not tree.half_made:
            if tree.dirty:
                return Delivered(state="waiting", reason="the quest's worktree", remedy="wait")
            tree.head = landed
        repo.branches[target] = landed
        self._maybe_die()
        return Delivered(state="delivered", commit=landed, is_shown=tree is not None)

    def _person_commits(self) -> None:
        repo = self.state.repo
        files = dict(repo.commits[repo.target].files)
        files["person"] = files.get("person", frozenset()) | {f"edit {len(repo.commits)}"}
        repo.move_target(repo.commit(files, (repo.target,), salt="person"))
        self.state.made |= 1 << repo.commits[repo.target].number

    async def write_task(self, task: Task) -> None:
        await self._effect()
        self.state.source[task.id] = str(task.state)
        self._maybe_die()

    async def tell_step(self, step: ItemTask) -> TaskItem:
        await self._effect()
        source = self.state.quests.source(self._maybe_die)
        return PlannedTasks(source).tell(step)


def _mends(call: StepCall) -> bool:
    """A role that hears of a red gate looks at its work together with what landed."""
    return call.role is not None and "red" in call.run.notes


def _without_bugs(lines: frozenset[str]) -> frozenset[str]:
    return frozenset(line for line in lines if not line.startswith("bug"))


def _error(call: StepCall, kind: ErrorKind) -> StepOutcome:
    return StepOutcome(
        session=call.run.session, error=StepError(kind=kind, message=f"simulated {kind}")
    )
