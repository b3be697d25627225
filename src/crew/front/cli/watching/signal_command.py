"""`crew signal`: reports how an agent's step ends."""

import os
from typing import TYPE_CHECKING, Any

import click

from crew.domain.kernel.errors import NeedsLogin
from crew.domain.requests import Request
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import print_json, say
from crew.runner.requests.ask_with_token import ask_with_token

if TYPE_CHECKING:
    from collections.abc import Callable


KINDS = ("complete", "partially-complete", "needs-user-input", "needs-role-followup")


EXAMPLE = """crew signal complete --summary "login fixed, tests pass"
crew signal partially-complete --progress "parser done" --continue-at "the printer"
crew signal needs-user-input --question "Which database?" """


_TEXTS = {
    "summary": "What was accomplished.",
    "progress": "What was done.",
    "continue-at": "Where to pick up.",
    "question": "What only a person can answer.",
    "context": "What the reader must know to answer or to act.",
    "role": "The role that must act first.",
    "reason": "Why that role must act first.",
}


def _text_options(command_: "Callable[..., Any]") -> "Callable[..., Any]":
    for name, words in reversed(_TEXTS.items()):
        command_ = click.option(f"--{name}", default="", help=words)(command_)
    return command_


@command("signal", example=EXAMPLE)
@click.argument("kind", type=click.Choice(KINDS))
@_text_options
@click.option("--resume/--no-resume", default=True, help="Continue this session after that role.")
@pass_call
def signal(call: Call, /, kind: str, *, resume: bool, **texts: str) -> None:
    """Report how this step ends; for agents.

    Run it inside the step. The first signal of a step counts; end your work after it.
    """
    token = os.environ.get("CREW_TOKEN")
    if not token:
        raise NeedsLogin(
            "only an agent's own step can signal, and CREW_TOKEN is not set",
            hint="a person uses `crew complete`, `crew answer` or `crew comment`",
        )
    args = {"token": token, "signal": kind, "resume": resume, **texts}
    reply = ask_with_token(Request(verb="signal", args=args), find=call.workplace)
    if call.json:
        print_json({"signal": kind, "reply": reply})
    else:
        say(str(reply))
