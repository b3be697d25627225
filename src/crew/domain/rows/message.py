"""A message for whoever works at a task: given once, with the next step, and then never again."""

from enum import StrEnum
from typing import ClassVar

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.machine import Machine, Move
from crew.domain.kernel.quotation import attributed

LONGEST_MESSAGE = 100_000
"""Characters; of a message for a task, or of what is said in a channel."""


class MessageState(StrEnum):
    QUEUED = "queued"
    GIVEN = "given"
    READ = "read"


MESSAGE = Machine(
    name="message",
    first=MessageState.QUEUED,
    moves=(
        Move(source="queued", target="given", trigger="given", meaning="a step has got it"),
        Move(source="given", target="read", trigger="read", meaning="that step ended well"),
    ),
)


@frozen
class Message:
    """Given in the prompt, fetched, or passed on while the agent works: one step has got it.

    A step that is interrupted or fails is given its messages again: nobody knows who read them.
    `step` is the step, `run/round/number`, that it was first given to.
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

    @property
    def shown(self) -> str:
        """As an agent reads it, in its prompt or in the middle of a step."""
        return attributed(f"From {self.sender} ({self.id})", self.text)
