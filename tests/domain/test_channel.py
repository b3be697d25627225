"""The machine of a channel's turns."""

from crew.domain.rows.channel import TURN, TurnState
from domain.contract import MachineContract


class TestTurnMachine(MachineContract):
    """Seed 002: "Transition Table", row by row."""

    machine = TURN
    states = ("offline", "idle", "queued", "active", "waiting")
    seed = (
        ("offline", "idle", "agent_starts"),
        ("idle", "queued", "assigned_to_channel"),
        ("idle", "offline", "agent_stops"),
        ("queued", "active", "turn_granted"),
        ("queued", "idle", "removed_from_channel"),
        ("queued", "offline", "agent_disconnects"),
        ("active", "queued", "turn_complete"),
        ("active", "queued", "timeout"),
        ("active", "waiting", "wait_requested"),
        ("active", "offline", "agent_crashes"),
        ("waiting", "active", "wait_resolved"),
        ("waiting", "queued", "wait_timeout"),
        ("waiting", "offline", "agent_disconnects"),
    )
    rests = ("offline",)
    final = ()


def test_a_turn_is_had_only_by_being_granted_or_by_going_on_after_a_wait():
    ways = {(move.source, move.trigger) for move in TURN.moves if move.target == "active"}
    assert ways == {
        ("queued", "turn_granted"),
        ("waiting", "wait_resolved"),
        ("waiting", "human_override"),
    }


def test_a_restarted_member_is_idle_and_not_queued_again_by_itself():
    assert {move.target for move in TURN.moves_from(TurnState.OFFLINE)} == {TurnState.IDLE}
