"""Sends an agent's request through the agent door; few imports, since each step starts some."""

import json
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crew.domain.kernel.errors import CrewError, TimedOut, TryLater

if TYPE_CHECKING:
    import socket

LONGEST_LINE = 1_048_576
"""The most bytes of one request; far above any need, so that refusals can be precise."""

PATIENCE_S = 60.0
_TRY_AGAIN_S = 0.02


def door_path() -> str:
    """The door of the step that this process belongs to; empty outside of a step."""
    return os.environ.get("CREW_DOOR", "")


def ask_door(
    path: str, verb: str, args: Mapping[str, object], *, timeout_s: float = PATIENCE_S
) -> dict[str, Any] | None:
    """The runner's words; None if no runner is behind this door. `args` hold the token."""
    others = {name: value for name, value in args.items() if name != "token"}
    message = {"token": args.get("token", ""), "verb": verb, "args": others}
    give_up_at = time.monotonic() + timeout_s
    import socket  # noqa: PLC0415 - most commands are no agent's

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        if not _connect(caller, path, give_up_at):
            return None
        caller.settimeout(max(0.1, give_up_at - time.monotonic()))
        try:
            caller.sendall(json.dumps(message).encode() + b"\n")
            line = _read_line(caller)
        except TimeoutError:
            raise TimedOut("the runner does not answer", hint="try again in a minute") from None
        except (BrokenPipeError, ConnectionError):
            return None
    return _words(line) if line else None


def no_runner() -> TryLater:
    """The refusal of a request that no runner is there to answer."""
    return TryLater(
        "the runner is restarting, try again",
        hint="nothing was changed; wait a few seconds, then send it again. "
        "If the runner stays away, a person starts it with `crew run`",
        code="no_runner",
    )


def _connect(caller: "socket.socket", path: str, give_up_at: float) -> bool:
    while True:
        try:
            caller.connect(path)
        except BlockingIOError:  # its queue is full for a moment
            if time.monotonic() > give_up_at:
                raise no_runner() from None
            time.sleep(_TRY_AGAIN_S)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            return False
        except OSError as error:
            hint = "use the CREW_DOOR of your own environment, unchanged"
            raise CrewError(f"the door {path} cannot be opened: {error}", hint=hint) from error
        else:
            return True


def _read_line(caller: "socket.socket") -> bytes:
    pieces = []
    while piece := caller.recv(65_536):
        pieces.append(piece)
        if piece.endswith(b"\n"):
            break
    return b"".join(pieces)


def _words(line: bytes) -> dict[str, Any]:
    words = json.loads(line)
    assert isinstance(words, dict)
    return words
