"""The tools of each kind of token: a step's, a terminal's, a reviewer's, a member's."""

from typing import NamedTuple

from crew.front.mcp.channel_tools import CHANNEL_INSTRUCTIONS, CHANNEL_TOOLS, MEMBER
from crew.front.mcp.tool_list import INSTRUCTIONS, TOOLS, Tool

TERMINAL = "terminal:"
"""The prefix of a terminal's token."""

REVIEW = "review:"
"""The prefix of a reviewer's token."""

_AT_TERMINAL = frozenset({"signal-back", "get-task", "post-message", "read-messages"})
_IN_REVIEW = frozenset({"get-task"})


class Offer(NamedTuple):
    """The tools for tokens with this prefix."""

    begins: str
    tools: tuple[Tool, ...]
    instructions: str


def _some(names: frozenset[str]) -> tuple[Tool, ...]:
    return tuple(tool for tool in TOOLS if tool.name in names)


OFFERS = (
    Offer(MEMBER, CHANNEL_TOOLS, CHANNEL_INSTRUCTIONS),
    Offer(
        TERMINAL,
        _some(_AT_TERMINAL),
        "You work on one task of crew, in a terminal. When it is finished and committed, call "
        "signal-back with complete: crew checks the work and types what must change. What only a "
        "person can answer, ask with needs-user-input: the answer is typed here.",
    ),
    Offer(
        REVIEW,
        _some(_IN_REVIEW),
        "You review one commit of a task of crew. get-task reads the task; your verdict is the "
        "last line of your answer.",
    ),
    Offer("", TOOLS, INSTRUCTIONS),
)


def offered(token: str) -> Offer:
    return next(offer for offer in OFFERS if token.startswith(offer.begins))
