"""`crew --help-worker` and other roles: help for an agent, generated from the commands."""

import click

from crew.config.prompts import prompt
from crew.front.cli.call import Call
from crew.front.cli.catalogue import COMMANDS
from crew.front.cli.command_shape import CrewCommand
from crew.front.cli.output import print_json, say

FOR_ROLE = {
    "worker": ("show", "diff", "comment", "complete", "signal"),
    "reviewer": ("show", "diff", "exec", "comment", "checkpoints"),
    "manager": (
        *("new", "list", "ready", "show", "edit", "dep", "undep", "comment", "close"),
        *("run", "start", "assign", "stop", "retry", "kill", "merge", "review"),
        *("ps", "poll", "peek", "logs", "diff", "send", "inbox", "answer", "cost", "prune"),
    ),
}
"""The commands of each role; names that crew does not have are skipped."""


def print_agent_help(ctx: click.Context, role: str) -> None:
    call = ctx.find_object(Call) or Call()
    text = agent_help(ctx, role)
    if call.json:
        print_json({"role": role, "text": text})
    else:
        say(text.rstrip("\n"))


def agent_help(ctx: click.Context, role: str) -> str:
    """The text for a role, with the list of its commands."""
    assert isinstance(ctx.command, click.Group)
    names = [name for name in FOR_ROLE[role] if name in COMMANDS]
    found = [(name, ctx.command.get_command(ctx, name)) for name in names]
    listed = [_entry(ctx, name, one) for name, one in found if one is not None]
    return prompt(f"help_{role}", commands="\n".join(listed))


def _entry(ctx: click.Context, name: str, one: click.Command) -> str:
    """The usage, help line and example of one command."""
    own = click.Context(one, info_name=name, parent=ctx)
    usage = " ".join((own.command_path, *one.collect_usage_pieces(own)))
    example = one.example.partition("\n")[0] if isinstance(one, CrewCommand) else ""
    lines = [usage, f"    {COMMANDS[name].help}", f"    Example: {example}" if example else ""]
    return "\n".join(line for line in lines if line)
