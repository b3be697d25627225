"""Cleans requests before they are answered, and answers what a step may read or post."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from crew.domain.kernel.errors import CrewError, NotFound, UsageError
from crew.domain.kernel.names import task_id
from crew.domain.kernel.text import plain
from crew.domain.requests import Request
from crew.domain.rows.message import LONGEST_MESSAGE
from crew.domain.rows.run import Run
from crew.domain.runs.signals import LONGEST
from crew.domain.world import World
from crew.runner.views.quest_views import load_view
from crew.runner.views.row_views import task_view
from crew.tasks.task_source import NewComment
from crew.tasks.validate_task import checked_comment
from crew.workplace import Workplace

TASK_FIELDS = ("id", "title", "body", "comments", "deps", "status")


COMMENT_KINDS = ("", "report", "message", "suggestion", "friction")

POSTING = frozenset({"post_message", "channel_post"})


def readable(request: Request) -> Request:
    """The request with plain, printable text; raises for a text that is too long."""
    longest = LONGEST_MESSAGE if request.verb in POSTING else LONGEST
    return Request(
        verb=request.verb,
        args={name: _readable(name, value, longest) for name, value in request.args.items()},
    )


def writable(request: Request) -> Request:
    """The request without surrogates, as from bytes that are not UTF-8, which cannot be stored.

    If a request could not be stored, its refusal could not be either, and later requests would
    wait.
    """
    return Request(verb=request.verb, args=_writable(dict(request.args)))


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list | tuple):
        return [_writable(one) for one in value]
    if isinstance(value, dict):
        return {_writable(key): _writable(one) for key, one in value.items()}
    return value


def _readable(name: str, value: Any, longest: int) -> Any:
    if isinstance(value, list):
        return [_readable(name, one, longest) for one in value]
    if isinstance(value, dict):
        return {plain(key): _readable(key, one, longest) for key, one in value.items()}
    if not isinstance(value, str):
        return value
    if len(value) > longest:
        raise UsageError(
            f"{name} has {len(value):,} characters; the limit is {longest:,}",
            hint="nothing was changed; send it again, shorter, and name a file for the rest",
        )
    return plain(value)


def refusal(error: CrewError) -> dict[str, Any]:
    """A refusal as a reply to another process."""
    words = {"code": error.code, "message": error.message, "hint": error.hint}
    return {"error": words, "exit_code": error.exit_code}


def own_task(workplace: Workplace, world: World, run: Run) -> dict[str, Any]:
    """The task of a run as its source has it now."""
    told = task_view(workplace.source.show(run.task), world)
    return {name: told[name] for name in TASK_FIELDS}


def own_quest(workplace: Workplace, world: World, run: Run) -> dict[str, Any]:
    """The quest of a run's task, as `crew quest show --json` prints it."""
    if run.task not in world.positions:
        raise NotFound(f"task {run.task} is not part of a quest", hint="get-task shows the task")
    return load_view(workplace, world.positions[run.task].quest)


READING: Mapping[str, Callable[[Workplace, World, Run], dict[str, Any]]] = {
    "get_task": own_task,
    "get_quest": own_quest,
}
"""What a step may read about itself."""


def comment_of(run: Run, args: Mapping[str, Any]) -> NewComment:
    """A comment of a step on its own task, with the author that the token proved."""
    kind = str(args.get("kind", ""))
    if kind not in COMMENT_KINDS:
        raise UsageError(
            f"{kind!r} is not a kind of comment", hint=f"there are: {', '.join(COMMENT_KINDS[1:])}"
        )
    author = str(run.agent or run.agent_kind)
    said = NewComment(author=author, text=str(args["text"]), at=time.time(), kind=kind)
    return checked_comment(said)


def message_from(run: Run, args: Mapping[str, Any]) -> Request:
    """A message with the sender that the token proved."""
    text = str(args["text"]).strip()
    if not text:
        raise UsageError(
            "the message is empty", hint="send it again with a text", code="empty_message"
        )
    sender = f"{run.agent or run.agent_kind}, who works on task {run.task}"
    return Request(
        verb="message",
        args={"task": task_id(str(args["task"])), "text": text, "sender": sender},
    )
