"""How a program ended: its exit code, and the reason if it did not end by itself."""

import signal
from collections.abc import Mapping
from typing import Literal

from crew.domain.kernel.frozen import frozen

Reason = Literal["exited", "timeout", "stalled", "lingered", "not_found", "killed", "failed"]

_ENDED_BY = {
    128 + number: number.name
    for number in (
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGKILL,
        signal.SIGSEGV,
        signal.SIGTERM,
    )
}


@frozen
class ProcessEnd:
    """How it ended. `code` is as in a shell (128 + n for signal n).

    `exited`: by itself. `killed`: by a signal that was not ours. `timeout`, `stalled`: by us, after
    its time limit or its limit of silence. `lingered`: by us, because it continued after its input
    was closed. `not_found`: there is no such program. `failed`: crew could not start it or could
    not write its log. `message` is empty only for `exited`.
    """

    code: int
    reason: Reason
    message: str = ""
    stderr_tail: str = ""


def process_end(
    reason: Reason, code: int | None, *, limits: Mapping[str, float], stderr_tail: str
) -> ProcessEnd:
    """The end of a program with this exit code; without one, it was killed."""
    code = 128 + signal.SIGKILL if code is None else code
    code = code if code >= 0 else 128 - code
    message = ""
    if reason == "timeout":
        message = f"ended after its limit of {limits[reason]:g} s"
    elif reason == "stalled":
        message = f"ended after {limits[reason]:g} s without output"
    elif reason == "lingered":
        message = "ended by crew, since it did not end by itself"
    elif code in _ENDED_BY:
        reason, message = "killed", f"ended by {_ENDED_BY[code]}"
    return ProcessEnd(code=code, reason=reason, message=message, stderr_tail=stderr_tail)
