"""`crew completion`: the script that teaches a shell to complete crew's commands."""

import click
from click.shell_completion import get_completion_class

from crew.front.cli.call import Call, pass_call
from crew.front.cli.command import command
from crew.front.cli.output import print_json, say

EXAMPLE = """eval "$(crew completion bash)"                # in ~/.bashrc
eval "$(crew completion zsh)"                 # in ~/.zshrc
crew completion fish > ~/.config/fish/completions/crew.fish"""


@command("completion", example=EXAMPLE)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@pass_call
def completion(call: Call, shell: str) -> None:
    """Print the completion script of a shell.

    Task ids, agent names and kinds of agents are completed live.
    """
    found = get_completion_class(shell)
    assert found is not None
    script = found(click.Command("crew"), {}, "crew", "_CREW_COMPLETE")
    # Not `source()`: for bash it starts a shell only to look at its version.
    text = script.source_template % script.source_vars()
    if call.json:
        print_json({"shell": shell, "script": text})
    else:
        say(text)
