"""The row of a question that only a person can answer; meanwhile its run occupies no agent."""

from enum import StrEnum
from typing import ClassVar

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.machine import Machine, Move


class QuestionState(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"


class About(StrEnum):
    """What is asked.

    A text about the task, permission to use a tool, how a blocked item continues, or which side of
    a conflict wins.
    """

    INPUT = "input"
    PERMISSION = "permission"
    BLOCKED = "blocked"
    CONFLICT = "conflict"


QUESTION = Machine(
    name="question",
    first=QuestionState.OPEN,
    moves=(
        Move(source="open", target="answered", trigger="answered"),
        Move(source="open", target="withdrawn", trigger="withdrawn", meaning="its asker ended"),
    ),
)


@frozen
class Question:
    kind: ClassVar[str] = "question"
    machine: ClassVar[Machine] = QUESTION

    id: str
    task: str
    run: str
    role: str
    question: str
    context: str = ""
    about: str = About.INPUT
    choices: tuple[str, ...] = ()
    asked_at: float = 0.0
    state: str = QuestionState.OPEN
    answer: str = ""
    answered_at: float | None = None

    @property
    def is_open(self) -> bool:
        return self.state == QuestionState.OPEN
