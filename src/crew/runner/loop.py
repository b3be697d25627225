"""The runner: holds the lock, drives the engine, hears requests, takes in tasks, ends cleanly."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, field
from typing import Any, Protocol

from crew.agents.output import one_line
from crew.agents.ownership import kill_leftovers
from crew.domain.answering import answer
from crew.domain.errors import CrewError, UsageError
from crew.domain.intake import Intake, seen
from crew.domain.merge_queue import Line
from crew.domain.pane import ended
from crew.domain.requests import Answer, Request
from crew.domain.world import World, born
from crew.git.landing import landed_tips, repair_sync
from crew.runner.engine import Engine
from crew.runner.local import LocalOutside
from crew.runner.manifests import manifest, manifest_file, write_manifest
from crew.runner.step_requests import message_from, own_task, readable, speaking_run
from crew.runner.tokens import VERBS as STEP_VERBS
from crew.runner.tokens import Tokens
from crew.runner.unnoticed import ended_unnoticed
from crew.runner.views import moment, state_document, write_state
from crew.runner.workplace import Workplace
from crew.store.database import StoreFailed
from crew.store.facts import load_world, record
from crew.store.lock import COMMAND, RUNNER, writer_lock
from crew.store.replies import Reply
from crew.store.requests import drop_requests, open_requests
from crew.store.settings import keep_doing, keep_setting, setting

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 1.0
"""How often the task source is looked at, for those who change it without telling us."""

LOOKING_SHARE = 50
"""Looking may take one part in so many of the runner's time."""

DELIVERY_PATIENCE_S = 10.0
"""How long `--drain` waits for a checkout that stands in the way of a delivery."""

DOING_EVERY_S = 0.5
STATE_EVERY_S = 0.2


@dataclass(slots=True, kw_only=True)
class Runner:
    """`crew run`: from the lock to the last delivery."""

    workplace: Workplace
    outside: LocalOutside
    engine: Engine
    tokens: Tokens
    drain: bool = False
    stopping: bool = False
    stopping_now: bool = False
    interrupted: bool = False
    patient: bool = True
    _stamp: object = None
    _said: dict[str, float] = field(default_factory=dict)
    _blocked_since: float | None = None
    _seen: World | None = None
    _written: Mapping[str, Any] | None = None
    _state_pause: asyncio.TimerHandle | None = None
    _writing: "asyncio.Task[None] | None" = None

    async def run(self) -> None:
        """Until stopped, or, with `drain`, until nothing more can move."""
        async with self._listening():
            looking = asyncio.ensure_future(self._look_now_and_then())
            try:
                self.take_in()
                self._find_landed()
                self.look_at_panes()
                await asyncio.to_thread(self.outside.sweep)
                await self.engine.run(until=self._is_over)
            finally:
                looking.cancel()
                await self.engine.shut_down()
                await self._write_last_state()
                await self.outside.tidy()

    def take_in(self) -> None:
        """Bring the world up to what the task source says; reads only what changed."""
        stamp = self.workplace.source.stamp()
        if stamp == self._stamp:
            return
        intake = Intake(target=self.workplace.target, at=time.time())
        facts = seen(self.engine.world, self.workplace.snapshot().items, intake)
        self._stamp = stamp
        if facts:
            self.engine.record(facts)
        if self.engine.world.tasks:
            self.workplace.keep_source()

    def look_at_panes(self) -> None:
        """A terminal session that ended without a word, as when its server was killed."""
        for run in ended_unnoticed(self.engine.world.runs.values()):
            facts = ended(run, number=run.pane_number, code=None, at=time.time())
            self.engine.record(facts)

    def _find_landed(self) -> None:
        """What landed is in git, whatever became of the database: it must still be delivered."""
        known = self.engine.world.lines
        self.engine.record(
            [
                born(Line(id=target, integration=tip, base=tip), "found", at=time.time())
                for target, tip in landed_tips(self.workplace.repo).items()
                if target not in known
            ]
        )

    def hear_requests(self) -> None:
        """Answer what other processes asked; a refusal is an answer too."""
        for number, request in open_requests(self.workplace.db):
            self.take_in()
            asked, words = self._answered(request)
            reply = Reply(number=number, words=words)
            world = record(self.workplace.db, self.engine.world, asked.facts, reply=reply)
            self.engine.recorded(asked.facts, world)

    def _answered(self, request: Request) -> tuple[Answer, dict[str, Any]]:
        try:
            asked = self._answer(request)
        except (KeyError, TypeError, ValueError) as error:
            hint = "see `crew --help`"
            return Answer(), _refused(request, UsageError(f"{request.verb}: {error!r}", hint=hint))
        except CrewError as error:
            return Answer(), _refused(request, error)
        return asked, {"reply": asked.reply}

    def heed(self, request: Request) -> Any:
        """Do what is asked, by somebody in this process."""
        asked = self._answer(request)
        self.engine.record(asked.facts)
        return asked.reply

    def reply_to(self, request: Request) -> dict[str, Any]:
        """Answer a step that is connected to this process; a refusal is an answer too."""
        self._guarded(self.take_in)
        asked, words = self._answered(request)
        try:
            self.engine.record(asked.facts)
        except StoreFailed as error:
            self.engine.fail(error)
            raise
        return words

    def _answer(self, request: Request) -> Answer:
        request = self.tokens.checked(request)
        if request.verb in STEP_VERBS:
            return self._answer_step(readable(request))
        if request.verb == "stop":
            self.stop(now=bool(request.args.get("now")))
            return Answer(reply=os.getpid())
        return answer(self.engine.world, request, rules=self.workplace.rules, at=time.time())

    def _answer_step(self, request: Request) -> Answer:
        """What only a step that is under way may ask."""
        world, rules = self.engine.world, self.workplace.rules
        run = speaking_run(world, request.args)
        if request.verb == "progress":
            self.doing(str(run.agent), one_line(str(request.args["text"])))
            return Answer(reply="noted")
        if request.verb == "get_task":
            return Answer(reply=own_task(world, run, self.workplace.source))
        if request.verb == "post_message":
            request = message_from(run, request.args)
        return answer(world, request, rules=rules, at=time.time())

    def stop(self, *, now: bool = False) -> None:
        """Running steps may finish, unless it is to end now; no new ones start."""
        self.stopping_now = self.stopping_now or now
        self.stopping = True
        self.engine.taking_work = False
        self.engine.changed.set()

    def interrupt(self) -> None:
        """The first Ctrl-C lets steps finish, unless nobody is to wait; the second ends them."""
        self.stop(now=self.interrupted or not self.patient)
        self.interrupted = True

    def _is_over(self) -> bool:
        self._keep_state()
        if self.stopping_now:
            return True
        if not (self.stopping or self.drain):
            return False
        return self.engine.is_quiet() or self._only_a_checkout_stands_in_the_way()

    def _only_a_checkout_stands_in_the_way(self) -> bool:
        """A person edits what landed: wait a moment, then end and say so."""
        engine = self.engine
        blocked = any(line.waiting for line in engine.world.lines.values())
        if not blocked or not engine.is_quiet(ignoring="deliver "):
            self._blocked_since = None
            return False
        self._blocked_since = self._blocked_since or time.monotonic()
        return time.monotonic() - self._blocked_since > DELIVERY_PATIENCE_S

    def _keep_state(self) -> None:
        """At once when an agent's state changes; what else there is to tell waits for a pause."""
        if self.engine.world is self._seen or self._writing is not None:
            return  # who writes looks again afterwards
        if self._state_pause is None:
            self._begin_writing()
            loop = asyncio.get_running_loop()
            self._state_pause = loop.call_later(STATE_EVERY_S, self._end_state_pause)
        elif self._seen is None or _states(self._seen) != _states(self.engine.world):
            self._begin_writing()

    def _end_state_pause(self) -> None:
        self._state_pause = None
        self._keep_state()

    def _begin_writing(self) -> None:
        """Beside the loop: to replace a file takes the disk longer than most of what crew does."""
        before, self._seen = self._seen, self.engine.world
        written = asyncio.to_thread(self._write_state, before, self._seen)
        self._writing = asyncio.ensure_future(written)
        self._writing.add_done_callback(self._end_writing)

    def _end_writing(self, written: "asyncio.Task[None]") -> None:
        self._writing = None
        if not written.cancelled() and (error := written.exception()):
            self.engine.fail(error)
        self._keep_state()

    async def _write_last_state(self) -> None:
        if self._writing is not None:
            self._writing.remove_done_callback(self._end_writing)
            await asyncio.wait({self._writing})
        if self._state_pause is not None:
            self._state_pause.cancel()
        self._write_state(self._seen, self.engine.world)

    def _write_state(self, before: World | None, world: World) -> None:
        """Written when what it tells changes: most facts tell nothing about agents."""
        if before is None or world.runs is not before.runs:
            self._keep_manifests(before, world)
        document = state_document(world)
        if document != self._written:
            write_state(self.workplace.state_file, document)
        self._written = document

    def _keep_manifests(self, before: World | None, world: World) -> None:
        known = before.runs if before else {}
        for run in world.runs.values():
            if run is not known.get(run.id):
                told = manifest(self.workplace, world, run, at=time.time())
                write_manifest(manifest_file(self.workplace, run.id), told)

    def doing(self, agent: str, words: str) -> None:
        """What an agent does now, at most twice a second."""
        now = time.monotonic()
        if now - self._said.get(agent, 0.0) >= DOING_EVERY_S:
            self._said[agent] = now
            keep_doing(self.workplace.db, agent, words, at=time.time())

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        """Woken by a byte in a named pipe, which has no limit on the length of its path."""
        pipe = os.open(self.workplace.wake_file, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        loop = asyncio.get_running_loop()
        loop.add_reader(pipe, self._woken, pipe)
        try:
            yield
        finally:
            loop.remove_reader(pipe)
            os.close(pipe)

    def _woken(self, pipe: int) -> None:
        os.read(pipe, 65536)
        self._guarded(self.hear_requests)
        self._guarded(self.take_in)
        self.engine.changed.set()

    async def _look_now_and_then(self) -> None:
        """The more tasks there are, the longer a look takes, and the rarer it is."""
        while True:
            began = time.monotonic()
            self._guarded(self.hear_requests)
            self._guarded(self.take_in)
            self._guarded(self.look_at_panes)
            took_s = time.monotonic() - began
            await asyncio.sleep(max(LOOK_AGAIN_S, LOOKING_SHARE * took_s))

    def _guarded(self, action: Callable[[], None]) -> None:
        """A task source that cannot be read now is tried again; a broken store ends the runner."""
        try:
            action()
        except StoreFailed as error:
            self.engine.fail(error)
        except (CrewError, OSError) as error:
            log.warning("%s: %s", action.__name__, error)


def _states(world: World) -> list[tuple[str, str]]:
    return [(agent.id, agent.state) for agent in world.agents.values()]


def _refused(request: Request, error: CrewError) -> dict[str, Any]:
    """The words of a refusal; an agent's are kept too, since no person sees them."""
    if request.verb in STEP_VERBS:
        log.warning("refused %s: %s", request.verb, error.message)
    words = {"code": error.code, "message": error.message, "hint": error.hint}
    return {"error": words, "exit_code": error.exit_code}


def make_runner(workplace: Workplace, *, drain: bool = False, epoch: int = 0) -> Runner:
    """The caller holds the lock."""
    db, outside = workplace.db, LocalOutside(workplace)
    engine = Engine(
        outside=outside,
        rules=workplace.rules,
        epoch=epoch,
        world=load_world(db),
        store=lambda world, facts: record(db, world, facts),
        now=time.time,
        session_of=workplace.session_of,
    )
    runner = Runner(
        workplace=workplace,
        outside=outside,
        engine=engine,
        tokens=Tokens(workplace.folder),
        drain=drain,
    )
    engine.doing = runner.doing
    return runner


@contextmanager
def holding_the_lock(workplace: Workplace, *, role: str = COMMAND) -> Iterator[None]:
    """One writer at a time; whatever an earlier one left running or half done is ended first."""
    with writer_lock(workplace.lock_file, role=role, started=str(moment(time.time()))):
        kill_leftovers(workplace.repo_id)
        repair_sync(workplace.repo)
        yield


class Beside(Protocol):
    """Something that runs beside the runner, on its loop, and ends with it."""

    def __call__(self, runner: Runner, /) -> AbstractAsyncContextManager[None]: ...


def _nothing(_runner: Runner) -> AbstractAsyncContextManager[None]:
    return nullcontext()


def run_crew(
    workplace: Workplace,
    prepare: Callable[[Runner], None],
    *,
    drain: bool,
    beside: Beside = _nothing,
) -> Runner:
    """Hold the lock and run; `prepare` may ask for something first, like agents to be there."""
    with holding_the_lock(workplace, role=RUNNER):
        epoch = int(setting(workplace.db, "epoch") or 0) + 1
        keep_setting(workplace.db, "epoch", str(epoch))
        drop_requests(workplace.db)
        runner = make_runner(workplace, drain=drain, epoch=epoch)
        prepare(runner)
        asyncio.run(_run_with_signals(runner, beside))
        return runner


async def _run_with_signals(runner: Runner, beside: Beside) -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, runner.interrupt)
    loop.add_signal_handler(signal.SIGTERM, runner.stop)
    async with beside(runner):
        await runner.run()


HOUSEKEEPING = frozenset({"kill", "writetask", "removeworktree", "pane"})
"""What a short command may do besides its own request: finish and tidy, start no agent."""

CHECKING = HOUSEKEEPING | {"inspect"}
"""What `crew complete` does without a runner."""

LANDING = HOUSEKEEPING | {"line", "test", "deliver"}
"""What `crew merge` does without a runner."""
