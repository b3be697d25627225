"""What a dialogue with a running program asks its driver to do, whichever program it is."""

from dataclasses import dataclass

from crew.agents.event_fields import Event


@dataclass(frozen=True, slots=True)
class SendMessage:
    """A message for the program, which is one line."""

    message: Event


@dataclass(frozen=True, slots=True)
class MessageRead:
    """The model has this message of ours."""

    message: str


@dataclass(frozen=True, slots=True)
class QuestionWithdrawn:
    """The question needs no answer any more."""

    request: str


@dataclass(frozen=True, slots=True)
class DialogueEnded:
    """There is nothing more to send."""
