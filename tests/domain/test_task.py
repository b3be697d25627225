"""The task's machine and its row."""

import pytest

from crew.domain.rows.task import FINISHED, TASK, Task, TaskState
from domain.contract import MachineContract


class TestTaskMachine(MachineContract):
    """Seed 001: "Task Status & Review Flow"; an error is a session that ended or was stopped."""

    machine = TASK
    states = ("todo", "in_progress", "done", "merged", "closed", "error")
    seed = (
        ("todo", "in_progress", "started"),
        ("in_progress", "done", "completed"),
        ("done", "merged", "delivered"),
        ("in_progress", "closed", "closed"),
        ("in_progress", "error", "failed"),
        ("error", "in_progress", "started"),
    )
    rests = ("merged", "closed")
    final = ("merged", "closed")


def test_finished_are_exactly_the_final_states():
    assert {state for state in TASK.states if TASK.is_final(state)} == FINISHED


@pytest.mark.parametrize("state", [s for s in TaskState if s not in FINISHED])
def test_a_task_can_be_given_up_whatever_its_state(state):
    assert ("closed", "closed") in {(move.target, move.trigger) for move in TASK.moves_from(state)}


@pytest.mark.parametrize("state", TaskState)
def test_only_a_done_task_with_a_place_in_the_line_is_queued(state):
    assert Task(id="1", state=state, queued_at=0.0).is_queued == (state == "done")
    assert not Task(id="1", state=state).is_queued
