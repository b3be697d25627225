"""Rows of different age after a repair: whatever is in doubt is detached, and nothing else."""

from dataclasses import replace

import pytest

from crew.domain.rows.agent import Agent
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.upkeep.contradictions import settled
from crew.domain.world import apply_all, with_rows

AGENT = Agent(id="A", agent_kind="sh", state="working", task="1", run="1.1")
RUN = Run(id="1.1", task="1", agent="A", state="working")
TASK = Task(id="1", state="in_progress", run="1.1", run_count=1)


def after(*rows):
    """The world when everything is settled, which is once enough."""
    world = with_rows(rows)
    world = apply_all(world, settled(world, at=5.0))
    assert settled(world, at=5.0) == []
    return world


@pytest.mark.parametrize(
    "rows",
    [
        (AGENT, RUN, TASK),
        (replace(AGENT, state="done"), replace(RUN, state="reviewing"), TASK),
        (replace(RUN, agent=None), TASK),
        (replace(AGENT, state="idle", task=None, run=None), replace(TASK, state="done")),
        (TASK.__class__(id="2", state="in_progress"),),  # as in a fresh clone
    ],
)
def test_rows_that_fit_together_stay(rows):
    assert settled(with_rows(rows), at=5.0) == []


def test_a_run_without_its_task_has_failed_and_its_agent_is_free():
    world = after(AGENT, RUN)
    assert (world.runs["1.1"].state, world.runs["1.1"].agent) == ("failed", None)
    assert (world.agents["A"].state, world.agents["A"].run) == ("idle", None)


def test_a_task_that_was_read_again_takes_the_next_number_for_its_run():
    world = after(AGENT, RUN, Task(id="1"))
    assert (world.tasks["1"].state, world.tasks["1"].run_count) == ("todo", 1)
    assert world.runs["1.1"].state == "failed"


def test_a_run_whose_agent_is_lost_waits_for_another():
    world = after(RUN, TASK)
    assert (world.runs["1.1"].state, world.runs["1.1"].agent) == ("working", None)
    assert world.tasks["1"].state == "in_progress"


def test_a_task_whose_run_is_lost_or_over_starts_again():
    assert after(AGENT, TASK).tasks["1"].state == "todo"
    ended = after(AGENT, replace(RUN, state="failed"), TASK)
    assert (ended.tasks["1"].state, ended.tasks["1"].run_count) == ("todo", 1)
    assert ended.agents["A"].state == "idle"


def test_an_agent_that_is_in_another_state_than_its_run_is_detached():
    world = after(replace(AGENT, state="done"), RUN, TASK)
    assert (world.agents["A"].state, world.runs["1.1"].agent) == ("idle", None)
