"""Runs the view on a terminal from its start to any of its ends, and leaves the terminal clean."""

import asyncio
import sys
from pathlib import Path

from crew.front.tui.clean_terminal import CleanTerminal
from crew.front.tui.colours import is_dark_terminal
from crew.front.tui.view_app import CrewView
from crew.front.tui.view_frame import ViewFrame
from crew.front.tui.workspace_view import open_workspaces

SWITCH_S = 0.001
"""How long a key waits for the thread that reads, five times less than Python's default."""


def run_view(root: Path) -> int:
    """Show the crew of this repository; the exit code."""
    return run_app(CrewView(root))


def run_workspaces() -> int:
    """Show all repositories of the person, and from there the crew of each."""
    is_dark = is_dark_terminal("auto")
    return open_workspaces(run_app, run_view, is_dark=is_dark)


def run_app(app: ViewFrame) -> int:
    """Run to the end; a fault inside is raised once the terminal is the person's again."""
    sys.setswitchinterval(SWITCH_S)
    with CleanTerminal() as terminal:
        asyncio.run(_run(app, terminal))
    if app.fault is not None:
        raise app.fault
    return terminal.exit_code or app.return_code or 0


async def _run(app: ViewFrame, terminal: CleanTerminal) -> None:
    loop = asyncio.get_running_loop()

    def leave() -> None:
        loop.call_soon_threadsafe(app.exit)

    terminal.leave_with(leave)
    await app.run_async()
