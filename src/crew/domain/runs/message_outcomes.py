"""What follows for messages: a step gets them, and has read them when it ends well."""

from crew.domain.kernel.fact import Fact
from crew.domain.rows.message import LONGEST_MESSAGE, Message, MessageState
from crew.domain.rows.run import Run
from crew.domain.world import World, born, moved


def new_message(world: World, task: str, *, sender: str, text: str, at: float) -> Fact:
    number = f"m{len(world.messages) + 1}"
    words = text[:LONGEST_MESSAGE]
    return born(Message(id=number, task=task, sender=sender, text=words, at=at), "sent", at=at)


def messages_given(world: World, run: Run, step: str, *, at: float) -> list[Fact]:
    return [given(message, step, at=at) for message in queued_for(world, run.task)]


def given(message: Message, step: str, *, at: float) -> Fact:
    return moved(message, "given", to=MessageState.GIVEN, at=at, step=step, given_at=at)


def read(message: Message, *, at: float) -> Fact:
    return moved(message, "read", to=MessageState.READ, at=at, read_at=at)


def queued_for(world: World, task: str) -> tuple[Message, ...]:
    """The messages that no step and no terminal has got yet, the oldest first."""
    return tuple(m for m in messages_for(world, task) if m.state == MessageState.QUEUED)


def messages_for(world: World, task: str) -> list[Message]:
    """The messages that no agent has read yet, the oldest first."""
    unread = [
        message
        for message in world.messages.values()
        if message.task == task and message.state != MessageState.READ
    ]
    return sorted(unread, key=lambda message: message.at)


def messages_read(world: World, run: Run, *, at: float) -> list[Fact]:
    """Mark the messages of a step as read after it ended well."""
    return [
        read(message, at=at)
        for message in messages_for(world, run.task)
        if message.state == MessageState.GIVEN
    ]
