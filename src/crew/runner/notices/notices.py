"""Sends a notice for each open question, with the configured command and to the configured URLs.

An outage of an agent kind is sent in the same way. Each question is sent once. This is recorded
before anything is sent, so a crash in between can lose a notice and never repeats one. A question
asked right before a crash has no such record, and the next runner sends it. `crew inbox` lists
every question in any case.
"""

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.text import one_line, plain
from crew.domain.rows.provider import Outage
from crew.domain.rows.question import Question
from crew.domain.world import World
from crew.runner.engine import Engine
from crew.store.kept_values import first_setting, setting
from crew.system.processes.allowed_environment import allowed_environment
from crew.system.processes.process import ProcessOrder, run_process
from crew.workplace import Workplace

log = logging.getLogger(__name__)

ASKED, PAUSED = "asked", "paused"
OUTAGE = "outage"
LOOK_EVERY_S = 0.5
COMMAND_LIMIT_S = 60.0
POST_LIMIT_S = 15.0
FAREWELL_S = 10.0
LONGEST = 4_000
"""Characters of a question in a notice; `crew inbox` has all of it."""

DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS")
"""What a program needs to show something on the user's screen."""


@frozen
class Notice:
    """One question, or the outage of an agent kind, as notices present it."""

    question: Question
    title: str

    @property
    def event(self) -> str:
        return PAUSED if self.question.about == OUTAGE else ASKED

    @property
    def message(self) -> str:
        return plain(self.question.question).replace("\0", "")[:LONGEST]

    def environment(self) -> dict[str, str]:
        return {
            "CREW_EVENT": self.event,
            "CREW_QUESTION_ID": self.question.id,
            "CREW_TASK_ID": self.question.task,
            "CREW_MESSAGE": self.message,
        }

    def document(self) -> dict[str, Any]:
        """The JSON document; chat programs show its field `text`."""
        one = self.question
        asks = f"{one.role} of task {one.task} ({one_line(self.title)})"
        text = f'{asks} asks: {self.message}\ncrew answer {one.id} "…"'
        return {
            "event": self.event,
            "question": one.id,
            "task": one.task,
            "title": self.title,
            "role": one.role,
            "kind": one.about,
            "message": self.message,
            "text": self.message if self.event == PAUSED else text,
        }


def _entry(outage: Outage) -> Question:
    """An outage as the entry of the inbox that it is."""
    words = f"The agent kind {outage.id} is paused: {outage.reason}\nTo continue: {outage.remedy}"
    return Question(id=outage.id, task="", run="", role="", question=words, about=OUTAGE)


@asynccontextmanager
async def telling_people(workplace: Workplace, engine: Engine) -> AsyncIterator[None]:
    """Send notices while inside; on exit, send those of the last questions."""
    notify = workplace.settings.notify
    if not notify.urls and not notify.command:
        yield
        return
    teller = Teller(workplace)
    looking = asyncio.ensure_future(_look_again(teller, engine))
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        teller.look(engine.world)
        await teller.end()


async def _look_again(teller: "Teller", engine: Engine) -> None:
    seen: World | None = None
    while True:
        if engine.world is not seen:
            seen = engine.world
            teller.look(seen)
        await asyncio.sleep(LOOK_EVERY_S)


@dataclass(slots=True)
class Teller:
    """Sends new notices in the background; a failure is logged and changes nothing."""

    workplace: Workplace
    _sending: set["asyncio.Task[None]"] = field(default_factory=set)
    _known: set[str] = field(default_factory=set)

    def look(self, world: World) -> None:
        try:
            self._look(world)
        except CrewError as error:
            log.warning("the record of a notice cannot be written: %s", error)

    def _look(self, world: World) -> None:
        for question in world.questions.values():
            if question.is_open and question.id not in self._known and self._is_first(question.id):
                title = world.tasks[question.task].title
                self._send(Notice(question=question, title=title))
        for outage in world.outages.values():
            key = f"{outage.id} since {outage.since}"
            if outage.is_open and key not in self._known and self._is_first(key):
                self._send(Notice(question=_entry(outage), title=""))

    def _is_first(self, key: str) -> bool:
        """Record that this process sends the notice; False if another one has done so."""
        name, mine = f"told {key}", f"{os.getpid()}/{id(self)}"
        kept = setting(self.workplace.db, name)
        is_first = kept is None and first_setting(self.workplace.db, name, mine) == mine
        self._known.add(key)  # after the write: if the store fails, it is tried again
        return is_first

    def _send(self, notice: Notice) -> None:
        notify = self.workplace.settings.notify
        ways = [_post(url, notice) for url in notify.urls]
        if notify.command:
            ways.append(_run(self.workplace, notify.command, notice))
        for way in ways:
            task = asyncio.ensure_future(way)
            self._sending.add(task)
            task.add_done_callback(self._sent)

    def _sent(self, task: "asyncio.Task[None]") -> None:
        self._sending.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("a notice was not sent: %s", error)

    async def end(self) -> None:
        """Let notices under way finish, within a limit, so that the runner can end."""
        if self._sending:
            await asyncio.wait(self._sending, timeout=FAREWELL_S)
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)


async def _run(workplace: Workplace, command: str, notice: Notice) -> None:
    """Run `[notify] command` in the repository's root; its processes end with it."""
    desktop = {name: os.environ[name] for name in DESKTOP if name in os.environ}
    order = ProcessOrder(
        argv=("sh", "-c", f"exec 2>&1\n{command}"),
        cwd=workplace.root,
        env={**allowed_environment(os.environ), **desktop, **notice.environment()},
        log=workplace.logs / "notify.log",
        marker=f"{workplace.repo_id}/notify/{notice.question.id}",
        timeout_s=COMMAND_LIMIT_S,
        idle_timeout_s=COMMAND_LIMIT_S + 1,
        sandbox=workplace.settings.sandbox.mode,  # type: ignore[arg-type]
    )
    end = await run_process(order, on_started=lambda _pid: None, on_output=lambda _chunk: None)
    if (end.reason, end.code) != ("exited", 0):
        how = end.message or f"it exited with code {end.code}"
        log.warning("[notify] command, for question %s: %s", notice.question.id, how)


async def _post(url: str, notice: Notice) -> None:
    """Post in a thread, and wait for it no longer than the limit."""
    from crew.runner.notices.notice_posts import host_of, post_notice  # noqa: PLC0415 - slow to import

    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def post() -> None:
        post_notice(url, notice.document(), timeout_s=POST_LIMIT_S)
        with contextlib.suppress(RuntimeError):  # the loop is closed: the runner has ended
            loop.call_soon_threadsafe(over.set)

    threading.Thread(target=post, daemon=True).start()
    try:
        await asyncio.wait_for(over.wait(), POST_LIMIT_S)
    except TimeoutError:
        log.warning("[notify] urls: %s takes too long", host_of(url))
