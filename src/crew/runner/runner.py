"""The runner: holds the lock, drives the engine, hears requests, takes in tasks, ends cleanly."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    nullcontext,
)
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from crew.domain.channels.member_requests import VERBS as MEMBER_VERBS
from crew.domain.dispatch import answer
from crew.domain.kernel.errors import CrewError, TryLater, UsageError
from crew.domain.kernel.text import one_line
from crew.domain.merging import merge_outcomes
from crew.domain.quests.council_stage import is_awaited
from crew.domain.requests import Answer, Request
from crew.domain.runs.speaking_run import speaking_run
from crew.git.delivery.delivery import landed_tips
from crew.runner.arrivals import arrivals, keep_taken_in
from crew.runner.engine import Engine
from crew.runner.interrupts import Interrupts
from crew.runner.kind_watch import KindWatch
from crew.runner.notices.notices import telling_people
from crew.runner.outside.dead_terminals import pane_ends
from crew.runner.outside.local_machine import LocalOutside
from crew.runner.requests.checked_requests import READING, message_from, readable, writable
from crew.runner.requests.tokens import VERBS as STEP_VERBS
from crew.runner.requests.tokens import Tokens
from crew.runner.requests.waiting_readers import Readers
from crew.runner.views.last_words import LastWords
from crew.runner.views.state_files import StateFiles
from crew.runner.writer_lock import holding_the_lock
from crew.store.database import StoreFailed
from crew.store.fact_log import load_world, record
from crew.store.kept_values import keep_setting, setting
from crew.store.replies import Reply
from crew.store.request_queue import drop_requests, open_requests
from crew.store.runner_lock import RUNNER
from crew.workplace import Workplace

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 1.0
"""How often the task source is looked at, for those who change it without telling us."""

LOOKING_SHARE = 50
"""Looking may take one part in so many of the runner's time."""

DELIVERY_PATIENCE_S = 10.0
"""How long `--drain` waits for a checkout that stands in the way of a delivery."""


@dataclass(slots=True, kw_only=True)
class Runner:
    """`crew run`: from the lock to the last delivery."""

    workplace: Workplace
    outside: LocalOutside
    engine: Engine
    tokens: Tokens
    files: StateFiles
    drain: bool = False
    stopping: bool = False
    stopping_now: bool = False
    interrupted: bool = False
    patient: bool = True
    interrupts: Interrupts = field(default_factory=Interrupts)
    readers: Readers = field(init=False)
    kinds: KindWatch = field(init=False)
    last_words: LastWords = field(init=False)
    _stamp: object = None
    _blocked_since: float | None = None

    def __post_init__(self) -> None:
        self.readers = Readers(self)
        self.kinds = KindWatch(workplace=self.workplace, engine=self.engine)
        self.last_words = LastWords(db=self.workplace.db, guarded=self._guarded)
        self.engine.doing = self.last_words.keep
        self.engine.told = self.readers.tell

    async def run(self) -> None:
        """Until stopped, or, with `drain`, until nothing more can move."""
        async with self._listening():
            looking = asyncio.ensure_future(self._look_now_and_then())
            try:
                self.take_in()
                self._find_landed()
                self.look_at_panes()
                self.readers.welcome()
                await asyncio.to_thread(self.outside.sweep)
                await self.engine.run(until=self._is_over)
                keep_taken_in(self.workplace, self._stamp)
            finally:
                looking.cancel()
                self.readers.leave()
                await self.engine.shut_down()
                self.last_words.leave()
                await self.files.keep_last()
                await self.outside.tidy()

    def take_in(self) -> None:
        """Bring the world up to what the task source says; reads only what changed."""
        stamp = self.workplace.source.stamp()
        if stamp == self._stamp:
            return
        facts = arrivals(self.workplace, self.engine.world)
        self._stamp = stamp
        if facts:
            self.engine.record(facts)
        if self.engine.world.tasks:
            self.workplace.keep_source()

    def look_at_panes(self) -> None:
        """A terminal session that ended without a word, as when its server was killed."""
        if facts := pane_ends(self.engine.world, at=time.time()):
            self.engine.record(facts)

    def _find_landed(self) -> None:
        """What landed is in git, whatever became of the database: it must still be delivered."""
        tips = landed_tips(self.workplace.repo)
        self.engine.record(merge_outcomes.found(self.engine.world, tips, at=time.time()))

    def hear_requests(self) -> None:
        """Answer what other processes asked; a refusal is an answer too."""
        for number, request in open_requests(self.workplace.db):
            if not self.readers.puts_off(number, request):
                self.take_in()
                self.answer_request(number, request)

    def answer_request(self, number: int, request: Request) -> None:
        asked, words = self._answered(request)
        reply = Reply(number=number, words=words)
        world = record(self.workplace.db, self.engine.world, asked.facts, reply=reply)
        self.engine.recorded(asked.facts, world)

    def _answered(self, request: Request) -> tuple[Answer, dict[str, Any]]:
        try:
            asked = self._answer(request)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
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
        request = self.tokens.checked(writable(request))
        if request.verb in STEP_VERBS:
            return self._answer_step(readable(request))
        if request.verb in MEMBER_VERBS:
            self.readers.notice(str(request.args["member"]))
            request = readable(request)
        if request.verb == "stop":
            self.stop(now=bool(request.args.get("now")))
            return Answer(reply=os.getpid())
        if request.verb == "mcp_url":
            return Answer(reply=self.outside.mcp_url)
        if request.verb == "cleanup":
            request = self._with_idleness(request)
        if request.verb == "go_on":
            self._take_on(str(request.args["task"]))
        return answer(self.engine.world, request, rules=self.engine.rules, at=time.time())

    def _take_on(self, task: str) -> None:
        """A runner that is up for single tasks only is up for this one too, to its end."""
        only = self.engine.rules.only_tasks
        if channel := self.engine.rules.only_channel:
            raise TryLater(
                f"the runner that is up works for the channel {channel} only",
                hint=f"`crew resume {task}` continues it when that runner has ended",
            )
        if only and task not in only:
            self.engine.rules = replace(self.engine.rules, only_tasks=(*only, task))

    def _with_idleness(self, request: Request) -> Request:
        """Whether nothing runs in an agent's worktree, and nothing will before the next runner."""
        agent = self.engine.world.agents.get(str(request.args["agent"]))
        runs = agent is not None and f"run {agent.run}" in self.engine.under_way
        idle = not (self.engine.taking_work or runs)
        return Request(verb=request.verb, args={**request.args, "idle": idle})

    def _answer_step(self, request: Request) -> Answer:
        """What only a step that is under way may ask."""
        world, rules = self.engine.world, self.engine.rules
        run = speaking_run(world, request.args)
        if request.verb == "progress":
            self.last_words.keep(str(run.agent or run.pane), one_line(str(request.args["text"])))
            return Answer(reply="noted")
        if request.verb in READING:
            return Answer(reply=READING[request.verb](self.workplace, world, run))
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
        self.files.keep()
        if self.stopping_now:
            return True
        if not (self.stopping or self.drain):
            return False
        if not self.stopping and self._only_channels_move():
            self.stop()  # no task can move any more: turns under way end, and no other begins
        return self.engine.is_quiet() or self._only_a_checkout_stands_in_the_way()

    def _only_channels_move(self) -> bool:
        """Unless it is a channel that this runner is here for."""
        engine = self.engine
        channels = engine.world.channels.values()
        if not channels or engine.rules.only_channel or any(map(is_awaited, channels)):
            return False
        return engine.is_quiet(ignoring=("turn",))

    def _only_a_checkout_stands_in_the_way(self) -> bool:
        """A person edits or commits without a pause: wait a moment, then end and say so."""
        engine = self.engine
        queues = engine.world.queues.values()
        outrun = ("line", "test") if any(queue.is_outrun for queue in queues) else ()
        blocked = any(queue.waiting for queue in queues)
        if not blocked or not engine.is_quiet(ignoring=("deliver", "turn", *outrun)):
            self._blocked_since = None
            return False
        self._blocked_since = self._blocked_since or time.monotonic()
        return time.monotonic() - self._blocked_since > DELIVERY_PATIENCE_S

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
        self._guarded(self.kinds.look)
        self._guarded(self.hear_requests)
        self._guarded(self.take_in)
        self.engine.changed.set()

    async def _look_now_and_then(self) -> None:
        """The more tasks there are, the longer a look takes, and the rarer it is."""
        while True:
            began = time.monotonic()
            self._guarded(self.kinds.look)
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


def _refused(request: Request, error: CrewError) -> dict[str, Any]:
    """The words of a refusal; an agent's are kept too, since no person sees them."""
    if request.verb in STEP_VERBS | MEMBER_VERBS.keys():
        log.warning("refused %s: %s", request.verb, error.message)
    words = {"code": error.code, "message": error.message, "hint": error.hint}
    return {"error": words, "exit_code": error.exit_code}


def make_runner(workplace: Workplace, *, drain: bool = False, epoch: int = 0) -> Runner:
    """The caller holds the lock."""
    workplace.repo_id  # noqa: B018 - read here, since threads must not touch the database
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
    return Runner(
        workplace=workplace,
        outside=outside,
        engine=engine,
        tokens=Tokens(workplace.folder),
        files=StateFiles(workplace=workplace, world=lambda: engine.world, failed=engine.fail),
        drain=drain,
    )


class Companion(Protocol):
    """Something that runs beside the runner, on its loop, and ends with it."""

    def __call__(self, runner: Runner, /) -> AbstractAsyncContextManager[None]: ...


def _nothing(_runner: Runner) -> AbstractAsyncContextManager[None]:
    return nullcontext()


def run_crew(
    workplace: Workplace,
    prepare: Callable[[Runner], None],
    *,
    drain: bool,
    beside: Companion = _nothing,
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


async def _run_with_signals(runner: Runner, beside: Companion) -> None:
    runner.interrupts.listen(runner)
    async with beside(runner), telling_people(runner.workplace, runner.engine):
        await runner.run()


def run_once(workplace: Workplace, request: Request, *, only: frozenset[str]) -> Any:
    """Heed one request and do what follows of these kinds; the caller holds the lock."""
    return asyncio.run(_run_once(workplace, request, only))


async def _run_once(workplace: Workplace, request: Request, only: frozenset[str]) -> Any:
    runner = make_runner(workplace, drain=True)
    runner.engine.only = only
    runner.engine.taking_work = False
    runner.take_in()
    reply = runner.heed(request)
    await runner.run()
    return reply
