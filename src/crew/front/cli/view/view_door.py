"""Opens the terminal view, or explains why it cannot open here and names the alternative."""

import os
import sys
from enum import StrEnum
from pathlib import Path

from crew.domain.kernel.errors import CrewError
from crew.find_crew import load_folder
from crew.front.cli.call import Call
from crew.front.cli.output import narrate

INSTALL = "uv tool install 'git-crew[tui]'"
NO_EXTRA = f"the terminal view needs the extra `tui`: {INSTALL}"
POOR_TERMINAL = (
    "this terminal (TERM) has no full-screen view; `crew dashboard --plain` prints lines"
)


class Showing(StrEnum):
    """What this terminal and this installation can show."""

    VIEW = "view"
    FRAMES = "frames"
    LINES = "lines"
    NOTHING = "nothing"


def showing() -> Showing:
    """The best that can be shown: without a terminal nothing, without the extra plain frames."""
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        return Showing.NOTHING
    if os.environ.get("TERM", "") in {"", "dumb", "unknown"}:
        return Showing.LINES
    return Showing.VIEW if has_extra() else Showing.FRAMES


def has_extra() -> bool:
    try:
        import textual.app  # noqa: F401, PLC0415 - loaded for the view alone
    except ImportError:
        return False
    return True


def hint_of(shown: Showing) -> str:
    """Why there is no view; empty if there is one, or if no terminal asked for it."""
    return {Showing.FRAMES: NO_EXTRA, Showing.LINES: POOR_TERMINAL}.get(shown, "")


def open_view(call: Call) -> int:
    """Show the view until the person leaves it; its exit code.

    Outside a crew it shows the workspaces of the person, if there are any.
    """
    try:
        root = call.folder().parent
    except CrewError:
        if (code := _open_workspaces(call)) is None:
            raise
        return code
    _heed_colours(call)
    from crew.front.tui.run_view import run_view  # noqa: PLC0415 - loads Textual

    return run_view(root)


def _open_workspaces(call: Call) -> int | None:
    """Show the repositories of the person; None if none are listed."""
    if not _has_workspaces():
        return None
    _heed_colours(call)
    from crew.front.tui.run_view import run_workspaces  # noqa: PLC0415 - loads Textual

    return run_workspaces()


def _has_workspaces() -> bool:
    """Whether the person lists repositories; errors in the list are reported later."""
    from crew.config.workspaces import load_workspaces  # noqa: PLC0415 - outside a crew alone

    try:
        return bool(load_workspaces())
    except CrewError:
        return True


def has_something_to_show(directory: Path) -> bool:
    """Whether `crew` alone opens the view here; without a crew the help is the better answer."""
    try:
        load_folder(directory)
    except CrewError:
        return _has_workspaces()
    return True


def _heed_colours(call: Call) -> None:
    """`--no-color` has the effect of NO_COLOR, which Textual obeys even if it is empty."""
    if call.no_colour:
        os.environ["NO_COLOR"] = "1"
    elif not os.environ.get("NO_COLOR"):
        os.environ.pop("NO_COLOR", None)


def tell_hint(call: Call, shown: Showing) -> None:
    if words := hint_of(shown):
        narrate(call, f"hint: {words}")
