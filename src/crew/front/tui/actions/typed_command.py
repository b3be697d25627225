"""The commands of the palette: what it lists, and how a typed line is run."""

import shlex
from typing import TYPE_CHECKING

from crew.front.cli.catalogue import ALIASES, COMMANDS
from crew.front.tui.dialogs.choice import Choice

if TYPE_CHECKING:
    from crew.front.tui.view_app import CrewView

IN_BACKGROUND = frozenset(
    {
        *("new", "edit", "dep", "undep", "comment", "close", "run", "stop", "spawn", "dismiss"),
        *("assign", "kill", "retry", "cleanup", "merge", "start", "send", "answer"),
        *("quest new", "quest cancel", "agents set", "config set"),
        *("channel new", "channel assign", "channel remove", "channel say", "channel override"),
        *("channel close", "channel disable", "channel enable"),
    }
)
"""Commands that only change something; all others are shown in the person's terminal."""

ABOUT_A_TASK = frozenset(
    {
        *("show", "edit", "dep", "undep", "comment", "diff", "poll", "close", "rm", "retry"),
        *("merge", "start", "attach", "send", "exec", "complete", "review", "resume", "peek"),
        *("logs", "runs", "checkpoints", "restore"),
    }
)
"""Commands whose first argument is a task: the palette writes the chosen one."""


def palette_choices(view: "CrewView") -> list[Choice]:
    """Every action, then every command of crew."""
    actions = [
        Choice(
            value=f"action:{action.name}",
            title=action.name.replace("_", " "),
            about=action.title,
            key=action.key,
        )
        for action in view.actions
        if action.name != "palette"
    ]
    commands = [
        Choice(value=f"command:{name}", title=name, about=entry.help, key=":")
        for name, entry in COMMANDS.items()
    ]
    return [*actions, *commands]


def starts(task: str) -> dict[str, str]:
    """How the line of each command begins, aliases too."""
    names = {**{name: name for name in COMMANDS}, **ALIASES}
    return {
        name: f"{name} {task} " if task and full in ABOUT_A_TASK else f"{name} "
        for name, full in names.items()
    }


async def run_line(view: "CrewView", line: str) -> None:
    """Run the line as a shell would split it."""
    try:
        words = shlex.split(line)
    except ValueError:
        view.notify("a quote is not closed", severity="error")
        return
    if words[:1] == ["crew"]:
        words = words[1:]
    if not words:
        return
    if is_in_background(words):
        await view.command(*detached(words))
    else:
        view.in_terminal(*shown_once(words), waits=True)
        view.expect_tasks()


def is_in_background(words: list[str]) -> bool:
    """Whether the line needs no terminal: it changes something and reads nothing from a person."""
    name = ALIASES.get(words[0], words[0])
    path = f"{name} {words[1]}" if len(words) > 1 else name
    asks = {"-h", "--help", "-"}.intersection(words[1:])
    return not asks and (name in IN_BACKGROUND or path in IN_BACKGROUND)


def detached(words: list[str]) -> list[str]:
    """A runner outlives the view."""
    if words[0] == "run" and not {"--detach", "-d"}.intersection(words):
        return [*words, "--detach"]
    return words


def shown_once(words: list[str]) -> list[str]:
    """One frame of the dashboard: the view itself is the live one."""
    if ALIASES.get(words[0], words[0]) in {"dashboard", "tui"}:
        return ["dashboard", "--once"]
    return words
