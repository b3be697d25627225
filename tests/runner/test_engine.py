"""The engine decides what follows, and only as long as that comes to an end."""

import asyncio
from types import SimpleNamespace

import pytest

from crew.domain import plan
from crew.domain.rows.task import Task
from crew.domain.rules import Rules
from crew.domain.world import apply_all, noted, with_rows
from crew.runner.engine import Engine


def test_decisions_without_an_end_end_the_runner_and_nothing_of_them_is_stored(monkeypatch):
    asked, stored = [], []

    def decide(world, clock, **_rules):
        now = clock.now
        asked.append(now)
        return [noted(world.tasks["1"], "again", at=now, priority=len(asked))]

    monkeypatch.setattr(plan, "decide", decide)
    engine = Engine(
        outside=SimpleNamespace(),
        rules=Rules(),
        epoch=1,
        world=with_rows([Task(id="1", written="todo")]),
        store=lambda world, facts: (stored.extend(facts), apply_all(world, facts))[1],
        now=lambda: 10.0,
        session_of=str,
    )
    with pytest.raises(RuntimeError, match="endless decisions: again 1"):
        asyncio.run(engine.run(until=lambda: True))
    assert (len(asked), stored) == (plan.MOST_DECISIONS, [])
