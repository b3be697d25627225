"""Parses the command line, loads one command, and exits with the right code."""

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

import crew
from crew.config.reserved_keys import NOT_SUPPORTED
from crew.front.cli.call import Call
from crew.front.cli.catalogue import ALIASES, COMMANDS, HIDDEN, LATER, SECTIONS
from crew.front.cli.command_shape import common_flags, print_example
from crew.front.cli.ctrl_c import take_back_ctrl_c
from crew.front.cli.exit_codes import ended
from crew.front.cli.output import prepare_streams

LISTED = "`crew --help` lists the commands"
COMPLETE_VARIABLE = "_CREW_COMPLETE"
AGENT_HELP = "crew.agent_help"
VIEW_HINT = "crew.view_hint"
EXAMPLE = 'crew init && crew new --title "Fix the login" && crew run --drain'


class Root(click.Group):
    """The top-level command; it imports a command's module only when that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        entry = {**COMMANDS, **HIDDEN}.get(ALIASES.get(cmd_name, cmd_name))
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        found = getattr(importlib.import_module(f"crew.front.cli.{module}"), attribute)
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in {*COMMANDS, *ALIASES, *HIDDEN} and not args[0].startswith("-"):
            raise _unknown(args[0], ctx)
        return super().resolve_command(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *own, help_option = super().get_params(ctx)
        return [*own, *common_flags(), help_option]

    def invoke(self, ctx: click.Context) -> object:
        if role := ctx.meta.get(AGENT_HELP):
            from crew.front.cli.agent_help import print_agent_help  # noqa: PLC0415 - loads commands

            print_agent_help(ctx, role)
            return 0
        return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, entry.help) for name, entry in commands.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        print_example(formatter, EXAMPLE)


def _keep_role(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    """Remember the role until all flags are parsed: `--json` may follow."""
    if value:
        ctx.meta[AGENT_HELP] = str(param.name).removeprefix("help_")


def _help_for(role: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    return click.option(
        f"--help-{role}",
        is_flag=True,
        expose_value=False,
        callback=_keep_role,
        help=f"Print what a {role} agent needs to know.",
    )


def _unknown(name: str, ctx: click.Context) -> click.UsageError:
    if name in LATER:
        return click.UsageError(f"`crew {name}` {NOT_SUPPORTED}\n{LISTED}", ctx=ctx)
    import difflib  # noqa: PLC0415 - only after a mistyped name

    near = difflib.get_close_matches(name, [*COMMANDS, *ALIASES], n=1)
    hint = f"did you mean `crew {near[0]}`?" if near else LISTED
    return click.UsageError(f"there is no command {name!r}\n{hint}", ctx=ctx)


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.option(
    "-C",
    "directory",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Run as if crew was started in DIR.",
)
@_help_for("worker")
@_help_for("reviewer")
@_help_for("manager")
@click.version_option(crew.__version__, message="crew %(version)s")
@click.pass_context
def root(ctx: click.Context, directory: Path | None) -> int:
    """Run a crew of coding agents on this git repository and land only what is proven.

    Without a command it opens the terminal view.
    """
    if directory is not None:
        ctx.obj.directory = directory.absolute()
    return 0 if ctx.invoked_subcommand else _open_alone(ctx)


def _open_alone(ctx: click.Context) -> int:
    """`crew` without a command: the view if it can be shown here, else the short help."""
    from crew.front.cli.view import view_door  # noqa: PLC0415 - commands do without it

    call: Call = ctx.obj
    found = view_door.Showing.NOTHING if call.json else view_door.showing()
    if found == view_door.Showing.VIEW and view_door.has_something_to_show(call.directory):
        return view_door.open_view(call)
    ctx.meta[VIEW_HINT] = view_door.hint_of(found)
    raise click.exceptions.NoArgsIsHelpError(ctx)


def run_command(args: list[str]) -> int:
    take_back_ctrl_c()
    prepare_streams()
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        return _complete(instruction)
    call: Call | None = None
    try:
        call = Call()
        with root.make_context("crew", list(args), obj=call) as ctx:
            result = root.invoke(ctx)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - every end has its code
        return ended(error, call or Call(directory=Path("/")), args)
    return result if isinstance(result, int) else 0


def _complete(instruction: str) -> int:
    from click.shell_completion import shell_complete  # noqa: PLC0415 - for one use in a thousand

    return shell_complete(root, {"obj": Call()}, "crew", COMPLETE_VARIABLE, instruction)
