"""Sends the request of an agent: through the agent door, or to a crew that the agent can see."""

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


def is_shut_in(directory: Path) -> bool:
    """Whether this is a process of a step that cannot see `.crew/`."""
    return bool(door_path()) and find_folder(directory) is None
