"""A quest step: one planned piece of a request, moved by the four signals (seed 003)."""

from enum import StrEnum

from crew.domain.machine import Machine, Move


class StepState(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    PARTIALLY_COMPLETE = "partially_complete"
    WAITING_FOR_USER = "waiting_for_user"
    WAITING_FOR_ROLE = "waiting_for_role"
    BLOCKED = "blocked"
    COMPLETE = "complete"


_SEED = "the seed gives the signals and what follows; the states are named here"

QUEST_STEP = Machine(
    name="quest step",
    first=StepState.PENDING,
    moves=(
        Move(source="pending", target="in_progress", trigger="slot_assigned"),
        Move(source="in_progress", target="complete", trigger="complete"),
        Move(source="in_progress", target="in_progress", trigger="next_role", added=_SEED),
        Move(source="in_progress", target="partially_complete", trigger="partially_complete"),
        Move(source="partially_complete", target="in_progress", trigger="slot_assigned"),
        Move(source="in_progress", target="waiting_for_user", trigger="needs_user_input"),
        Move(source="waiting_for_user", target="in_progress", trigger="answered"),
        Move(source="in_progress", target="waiting_for_role", trigger="needs_role_followup"),
        Move(source="waiting_for_role", target="in_progress", trigger="role_completed"),
        Move(
            source="waiting_for_role",
            target="complete",
            trigger="role_completed",
            meaning="resume: false, the flow goes on without the asking session",
        ),
        Move(source="in_progress", target="pending", trigger="crashed", added=_SEED),
        Move(
            source="in_progress",
            target="blocked",
            trigger="retries_spent",
            added="a role that used up its retries must not spin; a person is asked",
        ),
        Move(
            source="blocked",
            target="pending",
            trigger="answered",
            added="the person's answer lets the step try again",
        ),
    ),
)
