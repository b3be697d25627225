"""A channel turn: who may speak in a conversation of agents and people (seed 002)."""

from enum import StrEnum

from crew.domain.machine import Machine, Move


class TurnState(StrEnum):
    OFFLINE = "offline"
    IDLE = "idle"
    QUEUED = "queued"
    ACTIVE = "active"
    WAITING = "waiting"


_HUMAN = "the seed's exit conditions of WAITING name the human override; its table leaves it out"

TURN = Machine(
    name="channel turn",
    first=TurnState.OFFLINE,
    moves=(
        Move(source="offline", target="idle", trigger="agent_starts"),
        Move(source="idle", target="queued", trigger="assigned_to_channel"),
        Move(source="idle", target="offline", trigger="agent_stops"),
        Move(source="queued", target="active", trigger="turn_granted"),
        Move(source="queued", target="idle", trigger="removed_from_channel"),
        Move(source="queued", target="offline", trigger="agent_disconnects"),
        Move(source="active", target="queued", trigger="turn_complete"),
        Move(source="active", target="queued", trigger="timeout", meaning="forced, keeps place"),
        Move(source="active", target="waiting", trigger="wait_requested"),
        Move(source="active", target="offline", trigger="agent_crashes"),
        Move(source="waiting", target="active", trigger="wait_resolved"),
        Move(source="waiting", target="queued", trigger="wait_timeout", meaning="forfeits"),
        Move(source="waiting", target="offline", trigger="agent_disconnects"),
        Move(source="waiting", target="queued", trigger="human_override", added=_HUMAN),
        Move(source="waiting", target="active", trigger="human_override", added=_HUMAN),
        Move(
            source="active",
            target="idle",
            trigger="turn_complete",
            added="the seed's exit conditions of ACTIVE: idle if solo and nothing is left to say",
        ),
        Move(
            source="active",
            target="idle",
            trigger="removed_from_channel",
            added="edge case 6 of the seed: an active member can be removed, its turn ends",
        ),
        Move(
            source="waiting",
            target="idle",
            trigger="removed_from_channel",
            added="edge case 6 of the seed, for a member that waits",
        ),
    ),
)
