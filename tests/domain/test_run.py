"""The run's machine and its row."""

from dataclasses import replace

import pytest

from crew.domain.rows.run import PERSISTED, RUN, Run, RunState
from crew.domain.world import World, apply, born, moved
from domain.contract import MachineContract


class TestRunMachine(MachineContract):
    """Seed 004: "Valid Transitions"; an iteration is finished by DONE or by its last step."""

    machine = RUN
    states = ("init", "working", "reviewing", "complete", "failed")
    seed = (
        ("init", "working", "prepared"),
        ("init", "failed", "failed"),
        ("working", "reviewing", "done"),
        ("working", "reviewing", "step_limit"),
        ("working", "complete", "approved"),
        ("working", "failed", "failed"),
        ("reviewing", "working", "sent_back"),
        ("reviewing", "complete", "approved"),
        ("reviewing", "failed", "failed"),
    )
    rests = ("complete", "failed")
    final = ("failed",)


@pytest.mark.parametrize("state", RunState)
def test_a_run_is_live_until_it_is_complete_or_failed(state):
    is_live = state in {"init", "working", "reviewing"}
    assert Run(id="1.1", task="1", state=state).is_live == is_live


def test_a_run_remembers_every_state_it_passed():
    world = apply(World(), born(Run(id="1.1", task="1"), "created", at=0.0))
    way = [
        ("prepared", "working"),
        ("done", "reviewing"),
        ("sent_back", "working"),
        ("step_limit", "reviewing"),
        ("approved", "complete"),
    ]
    for trigger, state in way:
        world = apply(world, moved(world.runs["1.1"], trigger, to=state, at=1.0))
    states = ("init", "working", "reviewing", "working", "reviewing", "complete")
    assert world.runs["1.1"].history == states


def test_every_state_of_a_run_has_the_name_the_seed_gives_it_in_a_manifest():
    """Seed 004: "Run State Mapping"."""
    assert {str(state): name for state, name in PERSISTED.items()} == {
        "init": "submitted",
        "working": "working",
        "reviewing": "reviewing",
        "complete": "completed",
        "failed": "failed",
    }


def test_every_state_has_a_name_of_its_own_in_a_manifest():
    assert len(set(PERSISTED.values())) == len(RunState)


def test_the_attempts_at_a_step_are_one_step():
    run = Run(id="1.1", task="1", round=2, step=3)
    assert run.step_key == replace(run, attempt=9).step_key == "1.1/2/3"
