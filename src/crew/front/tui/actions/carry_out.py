"""Carries out commands of crew for the view: in the background, or in the person's terminal."""

from pathlib import Path
from typing import Any

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen
from crew.front.tui.actions.background_thread import in_background
from crew.runner.by_hand.crew_command import run_crew

PATIENCE_S = 3600.0
"""As long as `crew start` waits: a big repository and its `setup_command` may take a while."""


@frozen
class CommandReply:
    """What a command answered: a document, or why it was refused."""

    document: Any = None
    failure: str = ""
    hint: str = ""

    @property
    def is_refused(self) -> bool:
        return self.failure != ""


async def carry_out(
    args: tuple[str, ...], *, directory: Path, stdin: str = "", timeout_s: float = PATIENCE_S
) -> CommandReply:
    """Run a command of crew, with its own rules and its own refusals."""
    try:
        document = await in_background(
            run_crew, args, directory=directory, stdin=stdin, timeout_s=timeout_s
        )
    except CrewError as error:
        return CommandReply(failure=error.message, hint=error.hint)
    return CommandReply(document=document)
