"""The runner: holds the lock, drives the engine, answers requests, reads tasks, ends in order."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from crew.domain.channels.member_requests import VERBS as MEMBER_VERBS
from crew.domain.commands import CommandKind
from crew.domain.kernel.errors import Conflict, CrewError, TryLater, UsageError
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.names import terminal_name
from crew.domain.kernel.text import one_line
from crew.domain.merging.queue_search import landing_waits
from crew.domain.quests.council_stage import is_awaited
from crew.domain.request_verbs import answer
from crew.domain.requests import Answer, Request, parsed
from crew.domain.rows.terminal import Terminal
from crew.domain.runs.speaking_run import Speaker, speaking_run
from crew.domain.terminals.dialogs import TerminalInput, screens_seen
from crew.git import spawn_git
from crew.runner.arrivals import arrivals, keep_taken_in
from crew.runner.engine import Engine
from crew.runner.interrupts import SHARE_FOR_STEPS, Interrupts
from crew.runner.kind_watch import KindWatch
from crew.runner.lost_folder import FolderGone, KeptFolder
from crew.runner.outside.local_machine import LocalOutside
from crew.runner.outside.review_runs import is_open_review
from crew.runner.requests.checked_requests import (
    READING,
    comment_of,
    message_from,
    readable,
    refusal,
    writable,
)
from crew.runner.requests.tokens import VERBS as STEP_VERBS
from crew.runner.requests.tokens import Tokens
from crew.runner.requests.waiting_readers import Readers
from crew.runner.startup import repair_before_plan
from crew.runner.terminals.dead_terminals import terminal_ends
from crew.runner.terminals.terminal_input import read_terminals
from crew.runner.views.last_words import LastWords
from crew.runner.views.state_files import StateFiles
from crew.store.database import StoreFailed
from crew.store.fact_log import record
from crew.store.kept_values import PAUSED, keep_setting, setting
from crew.store.replies import Reply
from crew.store.request_queue import open_requests
from crew.system.full_disk import is_disk_full
from crew.system.private_files import open_pipe
from crew.system.threads import in_thread
from crew.workplace import Workplace

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 1.0
"""How often to read the task source, which other programs may change without a notice."""

LOOKING_SHARE = 50
"""Reading the task source may take one part in this many of the runner's time."""

DELIVERY_PATIENCE_S = 10.0
"""How long `--drain` waits for a checkout that blocks a delivery."""

LEAST_FOR_GIT_S = 5.0
"""The least time that a stop gives the git processes that keep the work of its steps."""

_BLOCKED = frozenset({CommandKind.DELIVER, CommandKind.TURN})
"""The commands that may still be due while a checkout blocks a delivery."""

_OUTRUN = _BLOCKED | {CommandKind.MERGE_QUEUE, CommandKind.TEST}
"""The same when the target branch moves faster than its tests."""


@dataclass(slots=True, kw_only=True)
class Runner:
    """The process of `crew run`, from the lock to the last delivery."""

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
    told: Callable[[Iterable[Fact]], None] = lambda _facts: None
    readers: Readers = field(init=False)
    kinds: KindWatch = field(init=False)
    last_words: LastWords = field(init=False)
    folder: KeptFolder
    _stamp: object = None
    _blocked_since: float | None = None

    def __post_init__(self) -> None:
        self.readers = Readers(self)
        self.kinds = KindWatch(workplace=self.workplace, engine=self.engine)
        self.last_words = LastWords(db=self.workplace.db, guarded=self._guarded)
        self.engine.doing = self.last_words.keep
        self.engine.pause.noted = self._note_pause
        self.engine.told = self._tell

    def _note_pause(self, reason: str) -> None:
        """Let `crew ps` and the narration show why no work starts."""
        self._guarded(lambda: keep_setting(self.workplace.db, PAUSED, reason))

    def _tell(self, facts: Iterable[Fact]) -> None:
        self.readers.tell(facts)
        self.told(facts)

    async def run(self) -> None:
        """Run until stopped or, with `drain`, until nothing more can change."""
        if setting(self.workplace.db, PAUSED):  # by a runner that ended in the meantime
            self._note_pause("")
        async with self._listening():
            looking = asyncio.ensure_future(self._look_now_and_then())
            try:
                await repair_before_plan(self)
                await self.engine.run(until=self._is_over)
                keep_taken_in(self.workplace, self._stamp)
            finally:
                looking.cancel()
                self.readers.leave()
                await self._leave()

    async def _leave(self) -> None:
        """End every command, and write the last state."""
        with self._git_limited():
            await self.engine.shut_down()
            self.last_words.leave()
            if self.workplace.has_lost_folder:  # it is written again once everything has ended
                with suppress(CrewError, OSError):
                    await self.outside.tidy()
                return
            await self.files.keep_last()
            await self.outside.tidy()

    @contextmanager
    def _git_limited(self) -> Iterator[None]:
        """End git processes, such as hanging ones, that outlast the time that a stop gives them.

        The next runner repeats what they did.
        """
        share_s = (1 - SHARE_FOR_STEPS) * self.workplace.settings.run.stop_timeout_s
        limit_s = max(LEAST_FOR_GIT_S, share_s)
        timer = asyncio.get_running_loop().call_later(limit_s, self._end_gits)
        try:
            yield
        finally:
            timer.cancel()
            spawn_git.allow()

    def _end_gits(self) -> None:
        if self.stopping_now:
            spawn_git.end_running()

    def take_in(self) -> None:
        """Bring the world up to date with the task source; reads only what changed."""
        stamp = self.workplace.source.stamp()
        if stamp == self._stamp or self._is_folder_gone():
            return
        before = self.workplace.index_text()
        facts = arrivals(self.workplace, self.engine.world)
        self.folder.notice(facts, before)
        self._stamp = stamp
        if facts:
            self.engine.record(facts)
        if self.engine.world.tasks:
            self.workplace.keep_source()

    def _is_folder_gone(self) -> bool:
        """Whether `.crew` was deleted; then the runner ends, and writes it again."""
        try:
            self.folder.check()
        except FolderGone as gone:
            self.engine.fail(gone)
            return True
        return False

    def look_at_terminals(self) -> None:
        """Record terminals that ended without a report, as when their server was killed."""
        if facts := terminal_ends(self.engine.world, at=time.time()):
            self.engine.record(facts)

    async def look_at_screens(self) -> None:
        """Record dialogs at terminals, and prompts that take the text that was kept for them."""
        if not any(one.is_open for one in self.engine.world.terminals.values()):
            return
        world = self.engine.world
        seen = await in_thread(lambda: list(read_terminals(self.workplace, world)))
        self._guarded(lambda: self._record_screens(seen))

    def _record_screens(self, seen: Iterable[tuple[Terminal, TerminalInput]]) -> None:
        if facts := screens_seen(self.engine.world, seen, at=time.time()):
            self.engine.record(facts)

    def hear_requests(self) -> None:
        """Answer the requests of other processes; a refusal is an answer too."""
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
        """Carry out a request of this process; raises a refusal."""
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
            self.engine.wait_or_fail(error)
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
        return self._decided(request)

    def _decided(self, request: Request) -> Answer:
        engine = self.engine
        return answer(engine.world, request, rules=engine.rules, scope=engine.scope, at=time.time())

    def _take_on(self, task: str) -> None:
        """Add a task to the scope of a runner that serves single tasks, until the task ends."""
        if channel := self.engine.scope.channel:
            raise TryLater(
                f"the runner that is up serves only the channel {channel}",
                hint=f"`crew resume {task}` continues the task once that runner has ended",
            )
        self.engine.narrow(self.engine.scope.with_task(task))

    def _with_idleness(self, request: Request) -> Request:
        """Add whether the agent's worktree stays unused until the next runner."""
        agent = self.engine.world.agents.get(str(request.args["agent"]))
        runs = agent is not None and self.engine.is_running(agent.run or "")
        idle = not (self.engine.scope.takes_work or runs)
        return Request(verb=request.verb, args={**request.args, "idle": idle})

    def _answer_step(self, request: Request) -> Answer:
        """Answer a request that only a step under way may send."""
        world, speaker = self.engine.world, parsed(Speaker, request)
        run = speaking_run(world, speaker)
        if speaker.review and not is_open_review(self.workplace, speaker.review):
            raise Conflict("that review has ended", hint="end your review now", code="review_over")
        if request.verb == "progress":
            self.last_words.keep(
                str(run.agent or terminal_name(run.task)), one_line(str(request.args["text"]))
            )
            return Answer(reply="noted")
        if request.verb in READING:
            return Answer(reply=READING[request.verb](self.workplace, world, run))
        if request.verb == "comment":
            self.workplace.source.comment(run.task, comment_of(run, request.args))
            return Answer(reply=f"task {run.task} has your comment")
        if request.verb == "post_message":
            request = message_from(run, request.args)
        return self._decided(request)

    def stop(self, *, now: bool = False) -> None:
        """Start no new steps; running ones may finish, unless `now` or a person has to answer."""
        self.stopping_now = self.stopping_now or now
        self.stopping = True
        self.engine.narrow(self.engine.scope.finishing())
        self._guarded(self.engine.put_off_questions)
        self.engine.changed.set()

    def interrupt(self) -> None:
        """The first Ctrl-C lets steps finish if the runner is patient; the second ends them."""
        self.stop(now=self.interrupted or not self.patient)
        self.interrupted = True

    def _is_over(self) -> bool:
        self.files.keep()
        if self.stopping_now:
            return True
        if not (self.stopping or self.drain or self._is_channel_closed()):
            return False
        if not self.stopping and self._only_channels_move():
            self.stop()  # no task can change: turns under way end, and no new one starts
        return self.engine.is_quiet() or self._only_a_checkout_stands_in_the_way()

    def _is_channel_closed(self) -> bool:
        """Whether the one channel that this runner serves is closed."""
        channel = self.engine.world.channels.get(self.engine.scope.channel)
        return channel is not None and not channel.is_open

    def _only_channels_move(self) -> bool:
        """Whether only turns of channels are due, and the runner does not serve a channel."""
        engine = self.engine
        channels = engine.world.channels.values()
        if not channels or engine.scope.channel or any(map(is_awaited, channels)):
            return False
        return engine.is_quiet(ignoring=frozenset({CommandKind.TURN}))

    def _only_a_checkout_stands_in_the_way(self) -> bool:
        """Whether a checkout or a moving target has blocked delivery for too long to wait."""
        engine = self.engine
        queues = engine.world.queues.values()
        is_outrun = bool(engine.held_up) or any(
            queue.is_outrun or landing_waits(queue) for queue in queues
        )
        blocked = any(queue.waiting for queue in queues)
        if not blocked or not engine.is_quiet(ignoring=_OUTRUN if is_outrun else _BLOCKED):
            self._blocked_since = None
            return False
        self._blocked_since = self._blocked_since or time.monotonic()
        return time.monotonic() - self._blocked_since > DELIVERY_PATIENCE_S

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        """Listen on a named pipe, whose path, unlike a socket's, may be long."""
        pipe = open_pipe(self.workplace.wake_file)
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
        """Read the task source; the longer a read takes, the rarer it is."""
        while True:
            if self._is_folder_gone():
                return
            began = time.monotonic()
            self.folder.remember()
            self._guarded(self.kinds.look)
            self._guarded(self.hear_requests)
            self._guarded(self.take_in)
            self._guarded(self.look_at_terminals)
            took_s = time.monotonic() - began
            await self.look_at_screens()
            await asyncio.sleep(max(LOOK_AGAIN_S, LOOKING_SHARE * took_s))

    def _guarded(self, action: Callable[[], None]) -> None:
        """Log a task source that cannot be read, and try again; a broken store ends the runner."""
        try:
            action()
        except StoreFailed as error:
            self.engine.wait_or_fail(error)
        except (CrewError, OSError) as error:
            if is_disk_full(error):
                self.engine.hold(error)
                return
            log.warning("%s: %s", action.__name__, error)


def _refused(request: Request, error: CrewError) -> dict[str, Any]:
    """The document of a refusal; an agent's is also logged, since no person sees it."""
    if request.verb in STEP_VERBS | MEMBER_VERBS.keys():
        log.warning("refused %s: %s", request.verb, error.message)
    return refusal(error)
