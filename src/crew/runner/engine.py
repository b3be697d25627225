"""plan, do, record: keeps under way whatever the plan asks for, and records what comes of it."""

import asyncio
import functools
import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from crew.agents.adapter import Controls, Say
from crew.domain.agents.agent_plan import starting_next
from crew.domain.channels.member_outcomes import turn_troubled
from crew.domain.channels.posts import injected_into
from crew.domain.commands import (
    Command,
    Inspect,
    Land,
    OpenPane,
    PaneCommand,
    Prepare,
    RunCommand,
    SpeakTurn,
    Vacate,
    WriteItems,
    kind_of,
)
from crew.domain.kernel.error_row import one_more_error
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.lead_choice import LEADS, lead_of
from crew.domain.plan import MISSING, following, plan, waits
from crew.domain.rows.channel import Member, Post
from crew.domain.rows.message import Message
from crew.domain.rows.run import Run
from crew.domain.rules import Rules
from crew.domain.runs.step_outcomes import troubled
from crew.domain.terminals.terminal_outcomes import not_inspected, not_opened
from crew.domain.world import World, apply_all
from crew.runner.doers.channel_doers import CHANNEL_DOERS
from crew.runner.doers.context import Context, Doer
from crew.runner.doers.merge_doers import MERGE_DOERS
from crew.runner.doers.run_doers import RUN_DOERS
from crew.runner.outside.outside import Outside

log = logging.getLogger(__name__)

_OF_ONE = (PaneCommand, WriteItems, Vacate)
"""A tmux that does not answer, a file of a quest that cannot be written: the others go on."""

DOERS: dict[type[Command], Doer] = {**RUN_DOERS, **MERGE_DOERS, **CHANNEL_DOERS}


@dataclass(slots=True, kw_only=True)
class Engine:
    """`store` records facts and returns the world after them; `only` names the kinds of
    commands, the first word of their keys, that may be done; None means all. `told` hears of every
    fact once it is stored.
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
    only: frozenset[str] | None = None
    taking_work: bool = True
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    failure: BaseException | None = None
    under_way: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _settled: World | None = None
    """Nothing followed from it at `_decided_at`, and nothing does before `_decide_again_at`."""
    _decided_at: float = 0.0
    _decide_again_at: float = 0.0
    _later: dict[str, float] = field(default_factory=dict)
    _failures: dict[str, int] = field(default_factory=dict)
    _awaited: dict[tuple[str, str], asyncio.Event] = field(default_factory=dict)
    _controls: dict[str, Controls] = field(default_factory=dict)

    def record(self, facts: Iterable[Fact]) -> None:
        facts = tuple(facts)
        self.recorded(facts, self.store(self.world, facts))

    def recorded(self, facts: Iterable[Fact], world: World) -> None:
        """Somebody has stored these facts; whoever waits for one of them is told."""
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
        """These rules hold from now on: what was decided by the old ones is decided again."""
        if rules != self.rules:
            self.rules = rules
            self._settled = None
            self.changed.set()

    def _pass_on(self, message: Message) -> None:
        """To the step or the reviews that are under way, if any; else it waits for the next."""
        run = self.world.tasks[message.task].run or ""
        if f"run {run}" not in self.under_way:
            return
        for key, controls in self._controls.items():
            if key.partition("/")[0] == run:
                controls.tell(Say(message=message.id, text=message.shown))

    def _inject(self, post: Post) -> None:
        """Into the turn that is under way, where the channel wants that."""
        for member in injected_into(self.world, post):
            if member in self._controls and f"turn {member}" in self.under_way:
                self._controls[member].tell(Say(message=post.id, text=post.shown))

    def _controls_of(self, run: str) -> Controls:
        self._controls[run] = Controls()
        return self._controls[run]

    async def _until(self, trigger: str, subject: str) -> None:
        """Until such a fact is recorded; one of the past does not count."""
        heard = self._awaited[trigger, subject] = asyncio.Event()
        try:
            await heard.wait()
        finally:
            self._awaited.pop((trigger, subject), None)

    def tick(self) -> None:
        """Decide what follows at once, then start what is due and not under way."""
        if self.world is not self._settled or self.now() >= self._decide_again_at:
            if facts := self._following(self.world):
                self.record(facts)
            self._settled = self.world
        for command in self._due():
            task = asyncio.ensure_future(self._do(command))
            self.under_way[command.key] = task
            task.add_done_callback(functools.partial(self._ended, command.key))

    async def run(self, *, until: Callable[[], bool]) -> None:
        """Tick whenever something happened or a deadline passed; raises what cannot be mended."""
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
        deadline = min(self._waits(since=self._decided_at).values(), default=None)
        self._decide_again_at = math.inf if deadline is None else deadline
        try:
            async with asyncio.timeout(None if deadline is None else deadline - self.now()):
                await self.changed.wait()
        except TimeoutError:
            return

    def is_quiet(self, *, ignoring: tuple[str, ...] = ()) -> bool:
        """Nothing is under way, due, or due after a wait, but for keys of these kinds.

        Nobody stays to see whether a missing task comes back.
        """
        if self.under_way and not ignoring:
            return False
        ignored = {MISSING, *ignoring}
        keys = {
            *self.under_way,
            *self._waits(since=self.now()),
            *(command.key for command in self._due()),
        }
        return all(kind_of(key) in ignored for key in keys)

    def _waits(self, *, since: float) -> dict[str, float]:
        """When to tick again although nothing happened, by the key of what is due then."""
        put_off = {key: at for key, at in self._later.items() if at > since}
        found = {**waits(self.world, since, rules=self.rules), **put_off}
        return {key: at for key, at in found.items() if self._is_wanted(key)}

    def _is_wanted(self, key: str) -> bool:
        kind = kind_of(key)
        if kind in {"run", "turn"} and not self.taking_work:
            return False
        return self.only is None or kind in self.only

    async def cancel(self, key: str) -> None:
        """End what is under way for this key, with everything it started."""
        task = self.under_way.get(key)
        if task is None or task is asyncio.current_task():
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def shut_down(self) -> None:
        """End everything; what was interrupted is planned again by the next runner."""
        self.taking_work = False
        await asyncio.gather(*(self.cancel(key) for key in self.under_way))

    def _following(self, world: World) -> list[Fact]:
        self._decided_at = self.now()
        return following(world, self._decided_at, rules=self.rules, taking_work=self.taking_work)

    def _due(self) -> list[Command]:
        now = self.now()
        commands = plan(
            self.world,
            now,
            rules=self.rules,
            epoch=self.epoch,
            taking_work=self.taking_work,
            busy=frozenset(self.under_way),
        )
        due: dict[str, Command] = {}
        for command in commands:
            if self._later.get(command.key, now) <= now and self._is_wanted(command.key):
                due.setdefault(command.key, command)
        return list(due.values())

    def _ended(self, key: str, task: asyncio.Task[None]) -> None:
        """Most have left already, together with their facts; somebody else may have the key now."""
        if self.under_way.get(key) is task:
            del self.under_way[key]
            self.changed.set()
        elif task.cancelled() or task.exception() is not None:
            self.changed.set()  # it left, and then its facts were not recorded

    async def _do(self, command: Command) -> None:
        self._later.pop(command.key, None)
        try:
            facts = await DOERS[type(command)](self._desk(), command)
            self._failures.pop(command.key, None)
        except (CrewError, OSError) as error:
            facts = self._failed(command, error)
        except Exception as error:  # noqa: BLE001 - a fault of ours must end the runner, not spin it
            self.fail(error)
            return
        # What is recorded is no longer under way: one tick sees both, and not each one.
        self.under_way.pop(command.key, None)
        try:
            self.record([*facts, *self._following(apply_all(self.world, facts))])
            self._settled = self.world
        except (CrewError, RuntimeError) as error:
            self.fail(error)
            return
        if isinstance(command, (Prepare, Land)):
            self._foresee()

    def _foresee(self) -> None:
        """A runner has what comes next made ready; who only finishes something does not."""
        if self.only is None and self.taking_work:
            targets = starting_next(self.world, self.now(), leads=LEADS, rules=self.rules)
            self.outside.foresee(targets)

    def _failed(self, command: Command, error: CrewError | OSError) -> list[Fact]:
        """A run's trouble is counted by its agent; anything else is tried again a few times."""
        log.warning("%s failed: %s", command.key, error)
        if isinstance(command, RunCommand):
            run = self.world.runs[command.subject]
            lead = lead_of(self.world, run)
            return troubled(self.world, run, lead, _words(error), rules=self.rules, at=self.now())
        if isinstance(command, OpenPane):
            run = self.world.runs[command.subject]
            return not_opened(self.world, run, _words(error), at=self.now())
        if isinstance(command, Inspect):
            return not_inspected(self.world.runs[command.subject], _words(error), at=self.now())
        if isinstance(command, SpeakTurn):
            return turn_troubled(
                self.world, command.subject, _words(error), rules=self.rules, at=self.now()
            )
        errors = one_more_error(self._failures.get(command.key, 0), limit=self.rules.stuck_after)
        self._failures[command.key] = errors.count
        self._later[command.key] = self.now() + self.rules.backoff(errors.count)
        if errors.is_spent and not isinstance(command, _OF_ONE):
            self.fail(error)
        return []

    def fail(self, error: BaseException) -> None:
        """Nothing can go on: `run` raises this."""
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


def _words(error: CrewError | OSError) -> str:
    """What went wrong and what to do about it, as an agent's row keeps it."""
    return f"{error.message} ({error.hint})" if isinstance(error, CrewError) else str(error)
