"""`crew plugin`: connects crew to a person's own Claude Code, Codex or Gemini CLI."""

import os

import click

from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import CrewGroup, command
from crew.front.cli.output import narrate, print_json, say
from crew.front.cli.setup.plugin_files import ASSISTANTS
from crew.front.cli.setup.plugin_install import (
    Changes,
    install_plugin,
    planned_files,
    uninstall_plugin,
)

NEXT = {
    "claude": "next: start `claude` in a repository with a crew; `/mcp` there shows crew's server",
    "codex": "next: start `codex` in a repository with a crew; `/mcp` there shows crew's tools",
    "gemini": "next: start `gemini` in a repository with a crew; `/mcp` there shows crew's server",
}

assistant_argument = click.argument("assistant", type=click.Choice(ASSISTANTS))


@click.group("plugin", cls=CrewGroup, example="crew plugin install claude")
def plugin() -> None:
    """Connect crew to your own Claude Code, Codex or Gemini."""


@command("install", example="crew plugin install claude\ncrew plugin install codex --print")
@assistant_argument
@click.option("--print", "dry_run", is_flag=True, help="Print the files and write nothing.")
@pass_call
def install(call: Call, assistant: str, *, dry_run: bool) -> None:
    """Give your assistant crew's tools, a skill, and a hook that shows open questions.

    Prints each file that it writes. The files are in a folder of their own below the assistant's
    folder; for Codex, crew also adds an entry to its config.toml. It never changes a file that crew
    did not write, and the command may be repeated. Codex has no hook.
    """
    if not dry_run:
        _print_changes(call, assistant, install_plugin(assistant, os.environ), NEXT[assistant])
        return
    files = planned_files(assistant, os.environ)
    if call.json:
        print_json([{"path": str(path), "content": text} for path, text in files.items()])
        return
    for path, text in files.items():
        say(f"# {path}\n{text}")


@command("uninstall", example="crew plugin uninstall claude")
@assistant_argument
@pass_call
def uninstall(call: Call, assistant: str) -> None:
    """Remove what `crew plugin install` wrote; files that you changed are kept."""
    changes = uninstall_plugin(assistant, os.environ)
    following = "sessions that are open keep it until they end" if changes else "nothing to remove"
    _print_changes(call, assistant, changes, following)


def _print_changes(call: Call, assistant: str, changes: Changes, following: str) -> None:
    if call.json:
        files = [{"path": str(path), "change": change} for path, change in changes.items()]
        print_json({"assistant": assistant, "files": files, "next": following})
        return
    for path, change in changes.items():
        say(f"{change}: {path}{' (you changed it)' if change == 'kept' else ''}")
    narrate(call, following)


for one in (install, uninstall):
    plugin.add_command(one)
