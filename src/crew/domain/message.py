"""A message for whoever works at a task: given once, with the next step, and then never again."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from crew.domain.machine import Machine, Move


class MessageState(StrEnum):
    QUEUED = "queued"
    GIVEN = "given"
    READ = "read"


MESSAGE = Machine(
    name="message",
    first=MessageState.QUEUED,
    moves=(
        Move(source="queued", target="given", trigger="given", meaning="it is in a step's prompt"),
        Move(source="given", target="read", trigger="read", meaning="that step ended well"),
        Move(source="queued", target="read", trigger="read", meaning="fetched by the agent"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A step that is interrupted or fails is given its messages again: nobody knows who read them.

    `step` is the step, `run/round/number`, that it was given to.
    """

    kind: ClassVar[str] = "message"
    machine: ClassVar[Machine] = MESSAGE

    id: str
    task: str
    sender: str
    text: str
    at: float
    state: str = MessageState.QUEUED
    step: str = ""
