"""The row of a message: a text for the agent or the reviewers of a task, given to one step."""

from enum import StrEnum
from typing import ClassVar

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.machine import Machine, Move
from crew.domain.kernel.quotation import attributed

LONGEST_MESSAGE = 100_000
"""Characters of a message for a task, or of a post in a channel."""


A_PERSON = "a person"
"""The sender of a message that came from no task."""


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
    """A message reaches one step: in its prompt, on request, or while the agent works.

    A step that is interrupted or fails is given its messages again, because it may not have read
    them. `step` is the step, `run/round/number`, that it was first given to, `given_at` when;
    `read_at` is when that step, or a later one, ended well.
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
    given_at: float | None = None
    read_at: float | None = None

    @property
    def shown(self) -> str:
        """The message as an agent reads it, in its prompt or during a step."""
        return attributed(f"From {self.sender} ({self.id})", self.text)

    @property
    def typed(self) -> str:
        """The message as it is typed into a terminal, where a person's words need no name."""
        return self.text if self.sender == A_PERSON else self.shown
