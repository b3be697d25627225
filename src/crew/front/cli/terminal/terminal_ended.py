"""The hidden command with which a terminal reports its end."""

import click

from crew.domain.requests import Request
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.runner.requests.ask_crew import ask


@command("_pane-ended", example="")
@click.argument("run")
@click.argument("number", type=int)
@click.argument("code", type=int)
@pass_call
def terminal_ended(call: Call, run: str, number: int, code: int) -> None:
    """Report that a terminal ended; only its own script calls this."""
    args = {"run": run, "number": number, "code": code}
    ask(call.workplace(), Request(verb="terminal_ended", args=args))
