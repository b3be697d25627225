"""The machine of a quest's steps."""

import pytest

from crew.domain.rows.quest import QUEST_STEP, ItemState
from domain.contract import MachineContract


class TestQuestStepMachine(MachineContract):
    """Seed 003: "Slot Model", "Signal Types" and what the `resume` flag means."""

    machine = QUEST_STEP
    states = tuple(ItemState)
    seed = (
        ("pending", "in_progress", "slot_assigned"),
        ("in_progress", "complete", "complete"),
        ("in_progress", "partially_complete", "partially_complete"),
        ("partially_complete", "in_progress", "slot_assigned"),
        ("in_progress", "waiting_for_user", "needs_user_input"),
        ("waiting_for_user", "in_progress", "answered"),
        ("in_progress", "waiting_for_role", "needs_role_followup"),
        ("waiting_for_role", "in_progress", "role_completed"),
        ("waiting_for_role", "complete", "role_completed"),
    )
    rests = ("complete", "dropped")
    final = ("complete", "dropped")


@pytest.mark.parametrize(
    "signal", ["complete", "partially_complete", "needs_user_input", "needs_role_followup"]
)
def test_each_of_the_four_signals_ends_the_slot_of_a_working_step(signal):
    targets = [move.target for move in QUEST_STEP.moves if move.trigger == signal]
    assert len(targets) == 1
    assert targets != ["in_progress"]
    assert [m.source for m in QUEST_STEP.moves if m.trigger == signal] == ["in_progress"]
