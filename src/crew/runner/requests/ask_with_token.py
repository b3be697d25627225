"""Sends the request of an agent: through the agent door, or to a crew that the agent can see."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crew.domain.requests import Request
from crew.find_crew import find_folder
from crew.runner.requests.ask_crew import ask, reply_in
from crew.runner.requests.door_client import PATIENCE_S, ask_door, door_path, no_runner
from crew.workplace import Workplace


def ask_with_token(
    request: Request, *, find: Callable[[], Workplace], timeout_s: float = PATIENCE_S
) -> Any:
    """Have a request with a token answered.

    Without a runner, a terminal outside of a sandbox has it answered as people have theirs.
    """
    if door := door_path():
        words = ask_door(door, request.verb, request.args, timeout_s=timeout_s)
        if words is not None:
            return reply_in(words)
        if is_shut_in(Path.cwd()):
            raise no_runner()
    return ask(find(), request)


def ask_own(verb: str, args: dict[str, object]) -> Any:
    """Have a request of the agent that this process belongs to answered through its door."""
    token = os.environ.get("CREW_TOKEN", "")
    words = ask_door(door_path(), verb, {**args, "token": token})
    if words is None:
        raise no_runner()
    return reply_in(words)


def is_shut_in(directory: Path) -> bool:
    """Whether this is a process of a step that cannot see `.crew/`."""
    return bool(door_path()) and crew_in_sight(directory) is None


def crew_in_sight(directory: Path) -> Path | None:
    """The `.crew/` of this folder, or inside a step that of its repository, unless it is hidden."""
    found = find_folder(directory.resolve())
    root = os.environ.get("CREW_REPO", "") if door_path() else ""
    return found or (find_folder(Path(root)) if root else None)
