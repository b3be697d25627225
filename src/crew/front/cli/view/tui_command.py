"""`crew tui`: opens the terminal view."""

from crew.domain.kernel.errors import CrewError, UsageError
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.view.view_door import INSTALL, Showing, open_view, showing, tell_hint


@command("tui", example="crew tui\ncrew -C ../other tui")
@pass_call
def tui(call: Call) -> int:
    """Open the terminal view, as `crew` alone does.

    Tasks, agents, questions, diffs and logs on one screen, and a key for each action. ? lists the
    keys, q leaves it; the crew keeps running.
    """
    found = Showing.NOTHING if call.json else showing()
    if found == Showing.VIEW:
        return open_view(call)
    if found == Showing.FRAMES:
        raise CrewError(
            "the terminal view needs the extra `tui`",
            hint=f"{INSTALL}; `crew dashboard` works without it",
            code="no_extra",
        )
    if found == Showing.LINES:
        from crew.front.cli.view.plain_lines import print_changes  # noqa: PLC0415 - reads the store

        tell_hint(call, found)
        return print_changes(call.workplace())
    raise UsageError(
        "the terminal view needs a terminal",
        hint="`crew dashboard --once` prints one frame, `crew dashboard --plain` prints changes",
        code="needs_terminal",
    )
