"""One entry of an agent's log, in the same form for every program that an agent may be."""

from typing import Literal

from crew.domain.kernel.frozen import frozen

EntryKind = Literal[
    "step",  # crew's own line: a step begins
    "prompt",  # a message to the agent
    "said",
    "thought",
    "tool",  # the agent uses a tool
    "result",  # of a tool
    "asked",  # the program waits for permission to use a tool
    "error",
    "cost",
    "ended",  # the program has finished its turn
    "text",  # any other line
]


@frozen
class LogEntry:
    """What happened. Only the fields that its kind needs are filled.

    A part continues with the next part of the same kind: a message arrives in pieces, a tool is
    named before its argument is known, and the cost of a step is reported call by call.
    """

    kind: EntryKind
    text: str = ""
    tool: str = ""
    call: str = ""  # the name of this use of a tool, if more of it follows
    is_error: bool = False
    is_helper: bool = False  # of an agent that this agent started
    is_part: bool = False
    is_total: bool = False  # a cost of the whole session, not of this step
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


Entries = tuple[LogEntry, ...]


def usage_entry(
    counts: tuple[int, int],
    cost_usd: float | None = None,
    *,
    is_part: bool = False,
    is_total: bool = False,
) -> LogEntry:
    """A cost. `counts` are the tokens that were read and written."""
    return LogEntry(
        kind="cost",
        input_tokens=counts[0],
        output_tokens=counts[1],
        cost_usd=cost_usd,
        is_part=is_part,
        is_total=is_total,
    )


def failure(text: str, *, reason: str = "failed") -> Entries:
    """A turn that ended with an error."""
    return (
        LogEntry(kind="error", text=text or reason),
        LogEntry(kind="ended", text=reason, is_error=True),
    )
