"""Makes an unforeseen failure of a doer one error of its task: the others continue.

An agent's files reach far into crew, and Python has errors for them that no caller expects: a path
with a NUL byte, a loop of links, a folder too deep for recursion.
"""

import functools
import logging
from collections.abc import Mapping

from crew.domain.commands import Command
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.runner.doers.context import Context, Doer

log = logging.getLogger(__name__)


class Unforeseen(CrewError):
    """A fault in crew while it worked on one task, channel or queue."""

    code = "bug"


def contained(doers: Mapping[type[Command], Doer]) -> dict[type[Command], Doer]:
    """The same doers; what they do not expect becomes an error that the engine counts."""
    return {kind: _contained(doer) for kind, doer in doers.items()}


def _contained(doer: Doer) -> Doer:
    @functools.wraps(doer)
    async def contained_doer(ctx: Context, command: Command) -> list[Fact]:
        try:
            return await doer(ctx, command)
        except (CrewError, OSError, AssertionError):
            raise
        except Exception as fault:
            log.exception("%s met a fault in crew", command.key)
            raise Unforeseen(
                f"this is a fault in crew: {type(fault).__name__}: {fault}",
                hint="the details are in `.crew/logs/crew.log`",
            ) from fault

    return contained_doer
