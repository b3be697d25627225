"""The rows of the inbox: questions that only a person can answer, and suspicious acts.

While its question is open, a run occupies no agent. A suspicious act is what an agent tried
although only a person may do it; nothing waits for its answer.
"""

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

    A text about the task, permission to use a tool, how a blocked item continues, which side of a
    conflict wins, whether a merge that lacks a part of one side is taken, or a choice in the dialog
    that a terminal shows.
    """

    INPUT = "input"
    PERMISSION = "permission"
    BLOCKED = "blocked"
    CONFLICT = "conflict"
    LOST_SIDE = "lost_side"
    DIALOG = "dialog"


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
    """`taken` means that the step which asked has got the answer while it was running."""

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
    taken: bool = False

    @property
    def is_open(self) -> bool:
        return self.state == QuestionState.OPEN


class SuspicionState(StrEnum):
    OPEN = "open"
    DISMISSED = "dismissed"


SUSPICION = Machine(
    name="suspicion",
    first=SuspicionState.OPEN,
    moves=(
        Move(
            source="open", target="dismissed", trigger="dismissed", meaning="a person has seen it"
        ),
    ),
)


@frozen
class Suspicion:
    """`act` is what the role tried, such as `crew answer`, and `count` how often.

    A run has one for each act. `task` and `run` are empty if they are not known.
    """

    kind: ClassVar[str] = "suspicion"
    machine: ClassVar[Machine] = SUSPICION

    id: str
    task: str
    run: str
    role: str
    act: str
    context: str = ""
    count: int = 1
    first_at: float = 0.0
    last_at: float = 0.0
    state: str = SuspicionState.OPEN
    answer: str = ""

    @property
    def is_open(self) -> bool:
        return self.state == SuspicionState.OPEN
