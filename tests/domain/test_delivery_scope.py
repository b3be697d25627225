"""A runner for one task delivers at once: agents that another runner left do not count."""

import pytest

from crew.domain.clock import Clock
from crew.domain.commands import Deliver
from crew.domain.merging.merge_plan import plan_queues
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rules import Rules
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.world import with_rows


@pytest.mark.parametrize(
    ("scope", "delivers"),
    [(EVERYTHING, False), (Scope(tasks=("2",)), False), (Scope(tasks=("1",)), True)],
)
def test_landings_are_collected_only_while_an_agent_of_this_runner_works(scope, delivers):
    agent = Agent(id="A", agent_kind="sh", state=AgentState.WORKING, task="2", run="2.1")
    queue = MergeQueue(id="main", integration="new", base="new", delivered="old", delivered_at=99.0)
    world = with_rows([agent, queue])
    planned = plan_queues(world, Clock(100.0), rules=Rules(), busy=frozenset(), scope=scope)
    assert (Deliver(subject="main") in list(planned)) == delivers
