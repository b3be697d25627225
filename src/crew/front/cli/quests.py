"""`crew quest`: a request that is planned into steps and walked through roles and gates."""

import json
import os
from pathlib import Path

import click

from crew.domain.errors import NeedsLogin, UsageError
from crew.domain.names import task_id
from crew.domain.requests import Request
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command import command, common_flags
from crew.front.cli.output import narrate, print_json, say
from crew.front.cli.params import text_or_stdin
from crew.runner.asking import ask
from crew.runner.quests import begin_quest


@click.group("quest", params=common_flags())
def quest() -> None:
    """Have a request planned into steps and carried out."""


@command("new", example='crew quest new "Add a login page"\ncrew quest new - < request.md')
@click.argument("text")
@click.option("--workflow", default="quest", help="The workflow that leads it.")
@click.option("--slots", type=int, help="How many steps may be worked at at once.")
@pass_call
def new(call: Call, text: str, workflow: str, slots: int | None) -> None:
    """Begin a quest; `crew run` carries it out."""
    request = text_or_stdin(text) or ""
    made = begin_quest(call.workplace(), request, workflow=workflow, slots=slots)
    if call.json:
        print_json({"id": made})
    else:
        say(made)


@command("plan", example="crew quest plan plan.json\ncrew quest plan - < plan.json")
@click.argument("file")
@pass_call
def plan(call: Call, file: str) -> None:
    """Hand in the steps of a quest, from a JSON file; for the agent that plans it."""
    token = os.environ.get("CREW_TOKEN")
    if not token:
        raise NeedsLogin(
            "only the step that plans can hand in a plan, and CREW_TOKEN is not set",
            hint="a person changes the steps with `crew edit`, `crew dep` and `crew close`",
        )
    args = {"token": token, "steps": _steps(file)}
    reply = ask(call.workplace(), Request(verb="plan_steps", args=args))
    if call.json:
        print_json({"reply": reply})
    else:
        say(str(reply))


def _steps(file: str) -> object:
    try:
        text = text_or_stdin(file) if file == "-" else Path(file).read_text(encoding="utf-8")
        found = json.loads(text or "")
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint="it must be JSON") from error
    return found["steps"] if isinstance(found, dict) and "steps" in found else found


@command("cancel", example="crew quest cancel 12")
@click.argument("quest_id", metavar="ID")
@click.option("--reason", help="Why.")
@pass_call
def cancel(call: Call, quest_id: str, reason: str | None) -> None:
    """Give a quest up: whoever works at it is ended, and all they did is kept."""
    args = {"quest": task_id(quest_id), "reason": reason}
    ask(call.workplace(), Request(verb="quest_cancel", args=args))
    if call.json:
        print_json({"id": task_id(quest_id), "state": "cancelled"})
    else:
        narrate(call, f"quest {task_id(quest_id)} is cancelled")


for one in (new, plan, cancel):
    quest.add_command(one)
