"""Messages to a task: sent by people, agents and crew, read by the agent that has the task."""

from collections.abc import Mapping

from crew.domain.kernel.errors import Conflict, UsageError
from crew.domain.kernel.frozen import frozen
from crew.domain.requests import Answer, Asked, Verb, find_task, typed
from crew.domain.rows.task import FINISHED
from crew.domain.runs.message_outcomes import given, messages_read, new_message, queued_for
from crew.domain.runs.speaking_run import Speaker, speaking_run
from crew.domain.tasks.task_requests import refuse_landed
from crew.domain.world import FactDraft


@frozen
class MessageTask:
    task: str
    sender: str
    text: str


def message(asked: Asked[MessageTask]) -> Answer:
    """Send a message to the agent or the reviewers of a task; the next step gets it."""
    task = find_task(asked.world, asked.request.task)
    refuse_landed(task)
    if task.state in FINISHED:
        raise Conflict(
            f"task {task.id} is {task.state}, so no agent will read it",
            hint="`crew new` makes a task for what is left to do",
        )
    wanted = asked.request
    if not wanted.text.strip():
        raise UsageError(
            "the message is empty", hint="give a text, or - to read stdin", code="empty_message"
        )
    sent = new_message(asked.world, task.id, sender=wanted.sender, text=wanted.text, at=asked.at)
    return Answer(facts=(sent,), reply=sent.subject)


def fetch_messages(asked: Asked[Speaker]) -> Answer:
    """Give an agent the new messages during its step; they are read once that step ends well.

    A terminal has no steps, so there they are read at once.
    """
    run = speaking_run(asked.world, asked.request)
    found = queued_for(asked.world, run.task)
    draft = FactDraft(asked.world)
    draft.add(*(given(message, run.step_key, at=asked.at) for message in found))
    if asked.request.terminal is not None:
        draft.add(*messages_read(draft.world, run, at=asked.at))
    said = [{"id": m.id, "from": m.sender, "text": m.text} for m in found]
    return Answer(facts=tuple(draft.facts), reply=said)


VERBS: Mapping[str, Verb] = {
    "message": typed(MessageTask, message),
    "fetch_messages": typed(Speaker, fetch_messages),
}
