"""The engine: plans commands, keeps them running, and records the facts they return."""

import asyncio
import functools
import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from crew.agents.adapter import Controls, Interrupt, Say
from crew.domain.agents.agent_plan import starting_next
from crew.domain.channels.channel_plan import Outlooks
from crew.domain.channels.member_outcomes import turn_troubled
from crew.domain.channels.posts import injected_into
from crew.domain.clock import Clock, next_at
from crew.domain.commands import (
    CheckAccepted,
    Command,
    CommandKey,
    CommandKind,
    Deliver,
    Inspect,
    Kill,
    Land,
    MergeQueueCommand,
    OpenTerminal,
    Prepare,
    RemoveWorktree,
    RunCommand,
    SpeakTurn,
    TerminalCommand,
    TestCandidate,
    Vacate,
    WriteItems,
)
from crew.domain.kernel.error_row import one_more_error
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.lead_choice import LEADS, lead_of
from crew.domain.merging.merge_outcomes import held_up
from crew.domain.plan import following, plan
from crew.domain.rows.channel import Member, Post
from crew.domain.rows.message import Message
from crew.domain.rows.run import Run
from crew.domain.rules import Rules
from crew.domain.runs.questions import put_off
from crew.domain.runs.run_outcomes import not_checked
from crew.domain.runs.step_errors import troubled
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.terminals.terminal_outcomes import not_inspected, not_opened
from crew.domain.world import World, apply_all
from crew.runner.disk_pause import DiskPause
from crew.runner.doers.channel_doers import CHANNEL_DOERS
from crew.runner.doers.context import Context, Doer
from crew.runner.doers.merge_doers import MERGE_DOERS
from crew.runner.doers.run_doers import RUN_DOERS
from crew.runner.doers.unforeseen import contained
from crew.runner.outside.outside import Outside
from crew.store.database import StoreFailed
from crew.system.full_disk import is_disk_full

log = logging.getLogger(__name__)

_OF_ONE = (TerminalCommand, WriteItems, Vacate)
"""Commands about one terminal, quest or member: if one fails, the rest of the crew continues."""

_OF_TASK = (Kill, RemoveWorktree)
"""Commands about one task: if one fails again and again, the next runner tries it."""

_OF_QUEUE = (MergeQueueCommand, TestCandidate, Deliver)
"""Commands about one merge queue: if one fails, the queue reports it and is tried again."""

DOERS: dict[type[Command], Doer] = contained({**RUN_DOERS, **MERGE_DOERS, **CHANNEL_DOERS})


@dataclass(slots=True, kw_only=True)
class Engine:
    """Runs the plan; `store` records facts and returns the new world, `told` gets the stored facts.

    `_settled` is the last world from which no further facts follow, decided at the clock
    `_decided`; `_planned` is the clock of the last tick. `held_up` are the queues whose commands
    fail again and again.
    """

    outside: Outside
    rules: Rules
    epoch: int
    world: World
    store: Callable[[World, Iterable[Fact]], World]
    now: Callable[[], float]
    session_of: Callable[[Run | Member], str]
    doing: Callable[[str, str], None] = lambda _agent, _words: None
    told: Callable[[Iterable[Fact]], None] = lambda _facts: None
    scope: Scope = EVERYTHING
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    failure: BaseException | None = None
    under_way: dict[CommandKey, asyncio.Task[None]] = field(default_factory=dict)
    held_up: set[str] = field(default_factory=set)
    pause: DiskPause = field(default_factory=DiskPause)
    _settled: World | None = None
    _decided: Clock = field(default_factory=lambda: Clock(0.0))
    _planned: Clock = field(default_factory=lambda: Clock(0.0))
    _outlooks: Outlooks = field(default_factory=Outlooks)
    _later: dict[CommandKey, float] = field(default_factory=dict)
    _failures: dict[CommandKey, int] = field(default_factory=dict)
    _left: set[CommandKey] = field(default_factory=set)
    _awaited: dict[tuple[str, str], asyncio.Event] = field(default_factory=dict)
    _controls: dict[str, Controls] = field(default_factory=dict)

    def record(self, facts: Iterable[Fact]) -> None:
        facts = tuple(facts)
        self.recorded(facts, self.store(self.world, facts))

    def recorded(self, facts: Iterable[Fact], world: World) -> None:
        """Take over the world after stored facts; wake the doers that wait for one of them."""
        self.world = world
        for fact in facts:
            if heard := self._awaited.get((fact.trigger, fact.subject)):
                heard.set()
            if fact.kind == "message" and fact.trigger == "sent":
                self._pass_on(world.messages[fact.subject])
            if fact.kind == "post":
                self._inject(world.posts[fact.subject])
        self.told(facts)
        self.changed.set()

    def follow(self, rules: Rules) -> None:
        """Apply new rules from now on; what the old ones decided is decided again."""
        if rules != self.rules:
            self.rules = rules
            self._settled = None
            self.changed.set()

    def narrow(self, scope: Scope) -> None:
        """Change the scope: the tasks, the channel and the kinds of commands to serve."""
        if scope != self.scope:
            self.scope = scope
            self._settled = None
            self.changed.set()

    def _pass_on(self, message: Message) -> None:
        """Send a message to the step or reviews under way; else it waits for the next step."""
        run = self.world.tasks[message.task].run or ""
        if not self.is_running(run):
            return
        for key, controls in self._controls.items():
            if key.partition("/")[0] == run:
                controls.send(Say(message=message.id, text=message.shown))

    def _inject(self, post: Post) -> None:
        """Send a post to the turn under way, if the channel is configured so."""
        for member in injected_into(self.world, post):
            if member in self._controls and SpeakTurn(subject=member).key in self.under_way:
                self._controls[member].send(Say(message=post.id, text=post.shown))

    def is_running(self, run: str) -> bool:
        """Whether a command of this run is under way."""
        return RunCommand(subject=run).key in self.under_way

    def put_off_questions(self) -> None:
        """End the steps that wait for a person; their runs wait for the answers without them."""
        for run in list(self.world.runs.values()):
            waits = run.stepping and self.is_running(run.id)
            if waits and (facts := put_off(self.world, run, at=self.now())):
                self.record(facts)
                self._controls[run.id].send(Interrupt())

    def _controls_of(self, run: str) -> Controls:
        self._controls[run] = Controls()
        return self._controls[run]

    async def _until(self, trigger: str, subject: str) -> None:
        """Wait until such a fact is recorded; earlier ones do not count."""
        heard = self._awaited[trigger, subject] = asyncio.Event()
        try:
            await heard.wait()
        finally:
            self._awaited.pop((trigger, subject), None)

    def tick(self) -> None:
        """Record the facts that follow at once, then start the commands that are due."""
        if self.world is not self._settled or self.now() >= next_at([self._decided]):
            if not self._is_settled():
                return
            self._settled = self.world
        self._planned = self._clock()
        for command in self._due(self._planned):
            task = asyncio.ensure_future(self._do(command))
            self.under_way[command.key] = task
            task.add_done_callback(functools.partial(self._ended, command.key))
        if self._planned.has_come(self.pause.until, None) and not self.under_way:
            self.pause.end()

    def _is_settled(self) -> bool:
        """Record what follows at once; False if there is no room for it yet."""
        try:
            if facts := self._following(self.world):
                self.record(facts)
        except StoreFailed as error:
            if not self._may_wait(error):
                raise
            self.hold(error)
            self._planned = self._clock()
            self._planned.has_come(self.pause.until, None)  # the time to look again
            return False
        return True

    async def run(self, *, until: Callable[[], bool]) -> None:
        """Tick after each change and deadline until `until` is true; raises a fatal error."""
        self.tick()
        self._foresee()
        while self.failure is None:
            self.changed.clear()
            self.tick()
            if until():
                return
            await self._wait()
        raise self.failure

    async def _wait(self) -> None:
        deadline = next_at([self._decided, self._planned])
        try:
            async with asyncio.timeout(deadline - self.now() if deadline < math.inf else None):
                await self.changed.wait()
        except TimeoutError:
            return

    def is_quiet(self, *, ignoring: frozenset[CommandKind] = frozenset()) -> bool:
        """Whether no command is under way, due, or waiting for its time, except these kinds."""
        if self.under_way and not ignoring:
            return False
        clock = self._clock()
        due = self._due(clock)
        kinds = {
            *(key.kind for key in self.under_way),
            *(command.kind for command in due),
            *clock.waits,
            *self._decided.waits,
        }
        return kinds <= {None, *ignoring}

    async def cancel(self, key: CommandKey) -> None:
        """Cancel the command with this key, and end every process it started."""
        task = self.under_way.get(key)
        if task is None or task is asyncio.current_task():
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def shut_down(self) -> None:
        """Cancel every command; the next runner plans the interrupted ones again."""
        self.narrow(self.scope.finishing())
        await asyncio.gather(*(self.cancel(key) for key in self.under_way))

    def _following(self, world: World) -> list[Fact]:
        self._decided = self._clock()
        return following(
            world, self._decided, rules=self.rules, scope=self.scope, outlooks=self._outlooks
        )

    def _clock(self) -> Clock:
        return Clock(self.now(), kinds=self.scope.kinds)

    def _due(self, clock: Clock) -> list[Command]:
        commands = plan(
            self.world,
            clock,
            rules=self.rules,
            scope=self.scope,
            epoch=self.epoch,
            busy=frozenset(self.under_way),
            outlooks=self._outlooks,
        )
        due: dict[CommandKey, Command] = {}
        for command in commands:
            if command.key in self._left:
                continue
            if not clock.has_come(self.pause.until, command.kind):
                continue
            if clock.has_come(self._later.get(command.key), command.kind):
                due.setdefault(command.key, command)
        return list(due.values())

    def _ended(self, key: CommandKey, task: asyncio.Task[None]) -> None:
        """`_do` usually removed the key when it recorded; a newer command may own it."""
        if self.under_way.get(key) is task:
            del self.under_way[key]
            self.changed.set()
        elif task.cancelled() or task.exception() is not None:
            self.changed.set()  # its key was removed, but its facts were not recorded

    async def _do(self, command: Command) -> None:
        self._later.pop(command.key, None)
        try:
            facts = await DOERS[type(command)](self._desk(), command)
            self._failures.pop(command.key, None)
            self.held_up.discard(command.subject)
            self.pause.end()
        except (CrewError, OSError) as error:
            if self._may_wait(error):
                self.hold(error)
                return
            if isinstance(error, StoreFailed):
                self.fail(error)
                return
            facts = self._failed(command, error)
        except Exception as error:  # noqa: BLE001 - a fault of ours must end the runner, not spin it
            self.fail(error)
            return
        try:
            is_recorded = await self._end(command, facts)
        except Exception as error:  # noqa: BLE001 - facts that are lost must end the runner
            self.fail(error)
            return
        if is_recorded and isinstance(command, (Prepare, Land)):
            self._foresee()

    async def _end(self, command: Command, facts: list[Fact]) -> bool:
        """Record what a command returned; on a full disk, once there is room.

        If its rows have changed by then, it is planned again instead, as after a kill.
        """
        before, task = self.world, self.under_way.get(command.key)
        while True:
            # The key goes before the facts are recorded, so that one tick sees both changes.
            self.under_way.pop(command.key, None)
            try:
                self.record([*facts, *self._following(apply_all(self.world, facts))])
                self._settled = self.world
                return True
            except StoreFailed as error:
                if not self._may_wait(error):
                    raise
                self.hold(error)
            if task is not None:
                self.under_way[command.key] = task
            await asyncio.sleep(max(0.0, (self.pause.until or 0.0) - self.now()))
            if not _are_untouched(facts, before, self.world):
                return False

    def _foresee(self) -> None:
        """Have worktrees prepared for the next tasks, if this engine takes new work."""
        if self.scope.takes_work and self.scope.allows(CommandKind.RUN):
            waiting = starting_next(self.world, self._clock(), leads=LEADS, scope=self.scope)
            self.outside.foresee(waiting)

    def _failed(self, command: Command, error: CrewError | OSError) -> list[Fact]:
        """The facts of a failed command; a failure that no row counts is retried a few times."""
        log.warning("%s failed: %s", command.key, error)
        facts = self._told_by_rows(command, _words(error))
        if facts is not None:
            return facts
        errors = one_more_error(self._failures.get(command.key, 0), limit=self.rules.stuck_after)
        self._failures[command.key] = errors.count
        self._later[command.key] = self.now() + self.rules.backoff(errors.count)
        if errors.is_spent and isinstance(command, _OF_QUEUE):
            self.held_up.add(command.subject)
            queue = self.world.queues[command.subject]
            return held_up(queue, *_problem(error), at=self.now())
        if errors.is_spent and isinstance(command, _OF_TASK):
            log.error("%s is left to the next runner: %s", command.key, _words(error))
            self._left.add(command.key)
            return []
        if errors.is_spent and not isinstance(command, _OF_ONE):
            self.fail(error)
        return []

    def _told_by_rows(self, command: Command, why: str) -> list[Fact] | None:
        """The facts of a failure that a run, a terminal or a member records; None for others."""
        now = self.now()
        if isinstance(command, SpeakTurn):
            return turn_troubled(self.world, command.subject, why, rules=self.rules, at=now)
        run = self.world.runs.get(command.subject)
        if run is None:
            return None
        if isinstance(command, RunCommand):
            return troubled(
                self.world, run, lead_of(self.world, run), why, rules=self.rules, at=now
            )
        if isinstance(command, OpenTerminal):
            return not_opened(self.world, run, why, at=now)
        if isinstance(command, CheckAccepted):
            self._left.add(command.key)
            return not_checked(run, why, at=now)
        return not_inspected(self.world, run, why, at=now) if isinstance(command, Inspect) else None

    def wait_or_fail(self, error: BaseException) -> None:
        """Wait for room on a full disk; any other error ends the engine."""
        if self._may_wait(error):
            self.hold(error)
        else:
            self.fail(error)

    def _may_wait(self, error: BaseException) -> bool:
        """Whether a disk is full; a crew that is about to end does not wait for its own database.

        Nothing is recorded in part, so that whatever could not be recorded is done again.
        """
        is_own = isinstance(error, StoreFailed) and not self.scope.takes_work
        return is_disk_full(error) and not is_own

    def hold(self, error: BaseException) -> None:
        """Start nothing for a while, since a disk is full; the work under way continues.

        No fact is recorded. A command that failed is planned again, as after a kill.
        """
        log.warning("the disk is full: %s", error)
        self.pause.begin(_words(error), self.rules, now=self.now())
        self.changed.set()

    def fail(self, error: BaseException) -> None:
        """End the engine: `run` raises this error."""
        self.failure = error
        self.changed.set()

    def _desk(self) -> Context:
        return Context(
            outside=self.outside,
            rules=self.rules,
            epoch=self.epoch,
            world=lambda: self.world,
            now=self.now,
            record=self.record,
            session_of=self.session_of,
            doing=self.doing,
            cancel=self.cancel,
            later=self._put_off,
            signalled=lambda run: self._until("signalled", run),
            answered=lambda question: self._until("answered", question),
            interrupted=lambda member: self._until("human_interrupts", member),
            controls=self._controls_of,
        )

    def _put_off(self, command: Command, until: float) -> None:
        self._later[command.key] = until


def _are_untouched(facts: Iterable[Fact], before: World, now: World) -> bool:
    """Whether the rows of these facts are as they were when the facts were made."""
    return all(
        before.rows(fact.kind).get(fact.subject) is now.rows(fact.kind).get(fact.subject)
        for fact in facts
    )


def _problem(error: CrewError | OSError) -> tuple[str, str]:
    """The error and its hint, as a queue's row stores them."""
    if isinstance(error, CrewError):
        return error.message, error.hint
    return str(error), "`crew doctor` checks the disk and the repository"


def _words(error: BaseException) -> str:
    """The error and its hint, as an agent's row stores them."""
    return f"{error.message} ({error.hint})" if isinstance(error, CrewError) else str(error)
