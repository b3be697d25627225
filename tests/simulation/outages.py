"""Logins, programs, credit and models of a simulated crew that fail until a person acts."""

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from crew.domain.kernel.fact import Fact
from crew.domain.provider_limits import PAUSING
from crew.domain.requests import Answer
from crew.domain.rows.step import StepError
from crew.domain.world import World
from crew.runner.engine import Engine
from simulation.outside import CALM, State

SHARE = 0.15
"""How many histories have outages; the others are as they were without them."""

RATE = 0.08
"""How many steps and reviews of such a history fail by one."""


@dataclass(slots=True)
class Outages:
    state: State
    chance: random.Random
    ask: Callable[..., Answer | None]

    def error(self) -> StepError | None:
        """The error of the next step or review; None if it may work."""
        if self.state.faults is CALM or self.chance.random() >= RATE:
            return None
        kind = self.chance.choice(sorted(PAUSING))
        return StepError(kind=kind, message=f"simulated {kind}")

    async def live(self, engine: Engine) -> None:
        """A person who mends what is broken, sooner or later."""
        while True:
            await asyncio.sleep(self.chance.uniform(5, 100))
            self.finish(engine)

    def finish(self, engine: Engine) -> None:
        """Try every kind again, as a new runner does by itself."""
        for outage in list(engine.world.outages.values()):
            if outage.is_open:
                self.ask(engine, "retry", subject=outage.id)

    def check(self, world: World, facts: Iterable[Fact]) -> None:
        """No step starts during an outage, unless it was about to when the outage began."""
        for fact in facts:
            if fact.kind == "run" and fact.trigger == "step_started":
                outage = world.outages.get(world.runs[fact.subject].agent_kind)
                is_paused = outage is not None and outage.is_open
                assert not (is_paused and fact.at > outage.since + 1), "a step during an outage"
