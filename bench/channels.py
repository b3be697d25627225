"""(j) How fast turns change in channels: a real engine, a real store, agents that cost nothing.

A hundred channels of five members talk at once. First everybody answers at once, and the turns a
second are counted; then everybody thinks for a while, as agents do, and the time is taken from the
end of one member's step to the activation of the next one, which is on disk by then, and further on
to the call of its CLI.
"""

import asyncio
import random
import tempfile
import time
from pathlib import Path

from bench.sizes import Size
from bench.tables import Figure, table, title
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.step import StepOutcome
from crew.domain.rules import Rules
from crew.domain.world import World
from crew.runner.engine import Engine
from crew.store.database import open_database
from crew.store.fact_log import record

CHANNELS, MEMBERS = 100, 5
THINKS_S = (1.0, 3.0)


class Talk:
    """The outside of an engine: agents that think for a while and then say one word."""

    def __init__(self, folder: Path, *, thinks_s: tuple[float, float], turns: int) -> None:
        self.thinks_s, self.turns, self.rng = thinks_s, turns, random.Random(1)
        self.ended: dict[str, float] = {}
        self.activations_s: list[float] = []
        self.calls_s: list[float] = []
        self.spoken = 0
        db = open_database(folder / "crew.db")
        self.engine = Engine(
            outside=self,
            rules=Rules(),
            epoch=1,
            world=World(),
            store=lambda world, facts: record(db, world, facts),
            now=time.time,
            session_of=lambda whose: whose.session or whose.id,
            told=self._told,
        )

    def _told(self, facts) -> None:
        now = time.perf_counter()
        for fact in facts:
            channel = fact.subject.partition("/")[0]
            if fact.trigger == "turn_granted" and fact.target and channel in self.ended:
                self.activations_s.append(now - self.ended[channel])

    def open(self) -> None:
        members = [{"name": f"m{n}", "agent_kind": "stub"} for n in range(MEMBERS)]
        for number in range(CHANNELS):
            args = {"channel": f"c{number}", "members": members, "topic": "talk", "rounds": None}
            request = Request(verb="channel_new", args=args)
            asked = answer(self.engine.world, request, rules=Rules(), at=time.time())
            self.engine.record(asked.facts)

    async def speak(self, call) -> StepOutcome:
        channel = call.channel.id
        if channel in self.ended:
            self.calls_s.append(time.perf_counter() - self.ended.pop(channel))
        await asyncio.sleep(self.rng.uniform(*self.thinks_s))
        self.spoken += 1
        self.ended[channel] = time.perf_counter()
        return StepOutcome(session=call.member.session, text="a word TURN_COMPLETE")

    def foresee(self, targets) -> None:
        """There are no tasks."""

    async def run(self) -> float:
        began = time.perf_counter()
        await self.engine.run(until=lambda: self.spoken >= self.turns)
        took_s = time.perf_counter() - began
        await self.engine.shut_down()
        return took_s


def measure(size: Size) -> list[Figure]:
    turns = 20 * CHANNELS if size.repeats > 1 else 5 * CHANNELS
    title(f"(j) Turns in {CHANNELS} channels of {MEMBERS} members, {turns} turns")
    hurried, hurried_s = _talk(thinks_s=(0.0, 0.0), turns=turns)
    calm, _ = _talk(thinks_s=THINKS_S, turns=turns)
    rate = hurried.spoken / hurried_s
    activated, called = _milliseconds(calm.activations_s), _milliseconds(calm.calls_s)
    head = f"each thinks {THINKS_S[0]:.0f} to {THINKS_S[1]:.0f} s"
    table(
        ("", "turns/s", "p50", "p99"),
        [
            ("all answer at once", f"{rate:.0f}", "", ""),
            (f"{head}: the next one is active", "", *(f"{ms:.1f} ms" for ms in activated)),
            (f"{head}: its CLI is called", "", *(f"{ms:.1f} ms" for ms in called)),
        ],
    )
    name = "p99 from a turn's end to the next activation"
    return [
        Figure(name="turns in channels", measured=rate, unit="per s"),
        Figure(name=name, measured=activated[1], unit="ms", aim=20),
    ]


def _milliseconds(times_s: list[float]) -> tuple[float, float]:
    """The median and the 99th of a hundred."""
    found = sorted(1000 * time_s for time_s in times_s)
    last = len(found) - 1
    return found[last // 2], found[int(0.99 * last)]


def _talk(*, thinks_s: tuple[float, float], turns: int) -> tuple[Talk, float]:
    with tempfile.TemporaryDirectory() as folder:
        talk = Talk(Path(folder), thinks_s=thinks_s, turns=turns)
        talk.open()
        return talk, asyncio.run(talk.run())
