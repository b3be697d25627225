"""Lets members of channels wait for new posts: a fact wakes them, so they need not poll."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crew.domain.channels.member_requests import awake, beat, has_something
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.requests import Request
from crew.store.request_queue import open_requests

if TYPE_CHECKING:
    from crew.runner.runner import Runner

LONGEST_READ_S = 50.0
"""Less than the minute after which most MCP clients give up a call."""

_KINDS = frozenset({"channel", "member", "post"})


@dataclass(slots=True)
class Readers:
    """`_waiting` has, by channel, the events of the reads that wait for a change in it.

    `_put_off` has, by number, the waiting requests of other processes.
    """

    runner: "Runner"
    _waiting: dict[str, set[asyncio.Event]] = field(default_factory=dict)
    _put_off: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    def welcome(self) -> None:
        """Restart each member's heartbeat: without a runner, no member could reach crew."""
        engine = self.runner.engine
        if engine.scope.takes_work:
            engine.record(awake(engine.world, at=time.time()))

    def tell(self, facts: Iterable[Fact]) -> None:
        if not self._waiting:
            return
        for channel in {f.subject.partition("/")[0] for f in facts if f.kind in _KINDS}:
            for event in self._waiting.get(channel, ()):
                event.set()

    def puts_off(self, number: int, request: Request) -> bool:
        """Whether another process's request is answered later, when there is something to read."""
        if number in self._put_off:
            return True
        if not _wish_s(request):
            return False
        waiting = asyncio.ensure_future(self._answer_later(number, request))
        self._put_off[number] = waiting
        waiting.add_done_callback(lambda _task: self._put_off.pop(number, None))
        return True

    async def _answer_later(self, number: int, request: Request) -> None:
        await self.patiently(request)
        db = self.runner.workplace.db
        if any(number == one for one, _ in open_requests(db)):  # it was not withdrawn
            self.runner.answer_request(number, request)

    async def patiently(self, request: Request) -> None:
        """Wait until a read has something to return, for as long as the request asks."""
        wish_s = _wish_s(request)
        if not wish_s:
            return
        try:
            member_id = self.runner.tokens.member(str(request.args.get("token", "")))
        except CrewError:
            return  # the answer will refuse it
        engine = self.runner.engine
        member = engine.world.members.get(member_id)
        if member is None:
            return
        self.notice(member_id)
        heartbeat_s = engine.world.channels[member.channel].heartbeat_s
        limit_s = min(wish_s, heartbeat_s / 2)
        await self._until(
            member.channel, lambda: has_something(engine.world, member_id), limit_s=limit_s
        )

    def notice(self, member_id: str) -> None:
        """Record a member's heartbeat; any request counts, even one that is refused."""
        engine = self.runner.engine
        if facts := beat(engine.world, member_id, at=time.time()):
            engine.record(facts)

    async def _until(self, channel: str, is_so: Callable[[], bool], *, limit_s: float) -> None:
        event = asyncio.Event()
        waiting = self._waiting.setdefault(channel, set())
        waiting.add(event)
        try:
            async with asyncio.timeout(limit_s):
                while not is_so():
                    event.clear()
                    await event.wait()
        except TimeoutError:
            return
        finally:
            waiting.discard(event)
            if not waiting:
                self._waiting.pop(channel, None)

    def leave(self) -> None:
        for task in self._put_off.values():
            task.cancel()


def _wish_s(request: Request) -> float:
    """How long a read of a channel asks to wait."""
    wish = request.args.get("waitSeconds")
    if request.verb != "channel_read" or not isinstance(wish, int | float):
        return 0.0
    return float(min(max(0, wish), LONGEST_READ_S))
