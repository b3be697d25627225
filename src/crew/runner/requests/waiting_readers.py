"""Members of channels that wait for something to read: each is woken by a fact, nobody polls."""

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
"""Below the minute after which most MCP clients give a call up."""

_KINDS = frozenset({"channel", "member", "post"})


@dataclass(slots=True)
class Readers:
    """`_waiting` are, by channel, those who wait for what happens in it.

    `_put_off` are the requests of other processes that wait for that, by number.
    """

    runner: "Runner"
    _waiting: dict[str, set[asyncio.Event]] = field(default_factory=dict)
    _put_off: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    def welcome(self) -> None:
        """Nobody could reach crew before the runner was up: everybody's time begins now."""
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
        """Whether a request of another process is answered later, when there is something."""
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
        if any(number == one for one, _ in open_requests(db)):  # nobody took it back
            self.runner.answer_request(number, request)

    async def patiently(self, request: Request) -> None:
        """Wait until a read has something to tell, or as long as it wants to wait."""
        wish_s = _wish_s(request)
        if not wish_s:
            return
        try:
            member_id = self.runner.tokens.member(str(request.args.get("token", "")))
        except CrewError:
            return  # it is refused when it is answered
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
        """Whoever asks for something is there, also if it is refused."""
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
    """How long somebody who reads a channel wants to wait for something."""
    wish = request.args.get("waitSeconds")
    is_read = request.verb == "channel_read" and isinstance(wish, int | float)
    return float(min(max(0, wish), LONGEST_READ_S)) if is_read and wish else 0.0
