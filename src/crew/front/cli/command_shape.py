"""The base class of all commands: common flags, an example in the help, and who may run it."""

import os
from collections.abc import Callable
from typing import Any

import click

from crew.find_crew import find_folder
from crew.front.cli.call import Call
from crew.front.cli.catalogue import CHANGING, OWN, READING, WITH_TOKEN

HELP_FLAGS = {"help_option_names": ["-h", "--help"]}
"""Each command has them by itself: click keeps the flags of the first context it was shown in."""


def _set(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    if value:
        setattr(ctx.find_object(Call), str(param.name), True)


def common_flags() -> list[click.Parameter]:
    def flag(*names: str, help_text: str) -> click.Option:
        return click.Option(
            [*names], is_flag=True, expose_value=False, callback=_set, help=help_text
        )

    return [
        flag("--json", help_text="Print one JSON document on stdout."),
        flag("--no-color", "no_colour", help_text="Print no colours."),
        flag("-q", "--quiet", help_text="Print only the answer."),
        flag("-v", "--verbose", help_text="Show where an unexpected error came from."),
    ]


class CrewCommand(click.Command):
    """A command with the common flags and an example."""

    def __init__(self, *args: Any, example: str = "", **attributes: Any) -> None:
        super().__init__(*args, **{"context_settings": HELP_FLAGS, **attributes})
        self.example = example
        _show_defaults(self.params)

    def get_help_option_names(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Always both names: click keeps the answer of the first call for all later ones."""
        return list(HELP_FLAGS["help_option_names"])

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *own, help_option = super().get_params(ctx)
        return [*own, *common_flags(), help_option]

    def invoke(self, ctx: click.Context) -> Any:
        check_caller(ctx)
        return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        print_example(formatter, self.example)


class CrewGroup(click.Group):
    """A command that has subcommands, with the common flags and an example."""

    def __init__(self, *args: Any, example: str = "", **attributes: Any) -> None:
        super().__init__(*args, **{"context_settings": HELP_FLAGS, **attributes})
        self.params = [*self.params, *common_flags()]
        self.example = example

    def get_help_option_names(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(HELP_FLAGS["help_option_names"])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        print_example(formatter, self.example)


def _show_defaults(params: list[click.Parameter]) -> None:
    for one in params:
        if isinstance(one, click.Option) and not one.is_flag and one.default not in (None, "", ()):
            one.show_default = True


def print_example(formatter: click.HelpFormatter, example: str) -> None:
    with formatter.section("Example"):
        for line in example.splitlines():
            formatter.write(f"  {line}\n")


def command(name: str, *, example: str) -> Callable[[Callable[..., Any]], CrewCommand]:
    return click.command(name, cls=CrewCommand, example=example)


def check_caller(ctx: click.Context) -> None:
    """Refuse a command of people to an agent's process."""
    path = _path(ctx)
    flags = [name for name in CHANGING.get(path, ()) if ctx.params.get(name) not in (None, False)]
    if not flags and (path in READING | WITH_TOKEN or _is_a_members(path)):
        return
    directory = (ctx.find_object(Call) or Call()).directory
    from crew.runner.requests.person_only import (  # noqa: PLC0415 - reading does without
        is_worktree_of_step,
        refuse_agents,
    )

    has_crew = find_folder(directory.resolve()) is not None
    if path == "init" and not has_crew and not is_worktree_of_step(directory):
        return  # an agent that works on crew itself makes crews of its own
    words = " ".join((f"crew {path}", *(f"--{name.replace('_', '-')}" for name in flags)))
    own = OWN[path](ctx.params) if path in OWN and not flags else ""
    refuse_agents(directory, f"`{words}`", own=own)


def _is_a_members(path: str) -> bool:
    """Whether this posts in a channel with a token, which tells a member from a person."""
    return path == "channel say" and bool(os.environ.get("CREW_TOKEN"))


def _path(ctx: click.Context) -> str:
    """The full name of a command, whatever alias was typed."""
    names = []
    at: click.Context | None = ctx
    while at is not None and at.parent is not None:
        names.append(str(at.command.name))
        at = at.parent
    return " ".join(reversed(names))
