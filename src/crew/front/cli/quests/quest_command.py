"""`crew quest`: starts, lists, shows and cancels quests, and takes the plan of their items."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from crew.domain.kernel.errors import CrewError, NeedsLogin, UsageError
from crew.domain.kernel.names import task_id
from crew.domain.quests.quest_requests import find_quest
from crew.domain.quests.role_sessions import as_they_keep, that_keep_none
from crew.domain.requests import Request
from crew.domain.rows.quest import Quest
from crew.domain.rows.workflow import Workflow
from crew.domain.rules import Rules
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import CrewGroup, command
from crew.front.cli.output import dollars, narrate, print_json, say, table
from crew.front.cli.params import base_option, text_or_stdin
from crew.front.cli.quests.quest_drawing import quest_drawing
from crew.front.cli.quests.quest_table import quest_table, steps_words
from crew.front.cli.quests.workflow_drawing import expected_sessions
from crew.front.cli.quests.workflows_command import complete_workflows
from crew.runner.quest_start import MOST_SLOTS, begin_quest, cancel_quest, quest_workflow
from crew.runner.requests.ask_with_token import ask_with_token
from crew.runner.views.quest_views import load_view, quest_line
from crew.store.fact_log import load_rows, load_world
from crew.store.runner_lock import find_runner

HEAD = ("ID", "STATE", "WORKFLOW", "STEPS", "COST", "TITLE")


def _complete_quests(
    ctx: click.Context,
    param: click.Parameter,  # noqa: ARG001 - click's signature
    start: str,
) -> list[CompletionItem]:
    with contextlib.suppress(CrewError, OSError):
        db = (ctx.find_object(Call) or Call()).workplace().db
        quests = load_rows(db, "quest").values()
        return [CompletionItem(q.id, help=q.state) for q in quests if q.id.startswith(start)]
    return []


quest_argument = click.argument("quest_id", metavar="ID", shell_complete=_complete_quests)


@click.group("quest", cls=CrewGroup, example='crew quest new "Add a login page"\ncrew quest list')
def quest() -> None:
    """Have a request planned into items and built."""


@command("new", example='crew quest new "Add a login page"\ncrew quest new - < request.md')
@click.argument("text")
@click.option(
    "--workflow",
    default="quest",
    shell_complete=complete_workflows,
    show_default=True,
    help="The workflow of the quest.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, MOST_SLOTS),
    help="Items to run in parallel.  [default: the workflow's]",
)
@base_option
@pass_call
def new(call: Call, text: str, workflow: str, slots: int | None, base: str | None) -> None:
    """Begin a quest; `crew run` works on it."""
    workplace = call.workplace()
    request = text_or_stdin(text) or ""
    branch = workplace.base_of_new(base, place=call.directory)
    made = begin_quest(workplace, request, workflow=workflow, slots=slots, base=branch)
    if call.json:
        print_json(load_view(workplace, made))
        return
    say(made)
    is_up = find_runner(workplace.lock_file) is not None
    next_step = "the runner takes it up now" if is_up else "`crew run` carries it out"
    _tell_sessions(call, quest_workflow(workplace, made), workplace.rules)
    narrate(call, f"{next_step}; `crew quest show {made}` shows its progress")


def _tell_sessions(call: Call, workflow: Workflow, rules: Rules) -> None:
    narrate(call, expected_sessions(as_they_keep(workflow, rules)))
    for role, kind in that_keep_none(workflow, rules).items():
        narrate(call, f"{role} has a new session for each item: {kind} cannot take one along")


@command("list", example="crew quest list\ncrew quest list --json")
@pass_call
def list_quests(call: Call) -> None:
    """List the quests, the newest last."""
    world = load_world(call.workplace().db)
    quests = sorted(world.quests.values(), key=lambda one: (one.created_at, len(one.id), one.id))
    views = [quest_line(world, one) for one in quests]
    if call.json:
        print_json(views)
    elif views:
        table(HEAD, [_row(view) for view in views], call)
    else:
        narrate(call, 'no quests yet: crew quest new "…" begins one')
    if waiting := [one for view in views for one in view["questions"]]:
        narrate(call, f"{', '.join(waiting)} wait for an answer: `crew inbox` lists them")


def _row(view: dict[str, Any]) -> tuple[str, ...]:
    return (
        view["id"],
        view["state"],
        view["workflow"],
        steps_words(view),
        dollars(view["cost_usd"]),
        view["title"],
    )


@command(
    "show",
    example="crew quest show 12\ncrew quest show 12 --full\ncrew quest show 12 --json | jq .steps",
)
@quest_argument
@click.option("--full", is_flag=True, help="Also show sessions, gates and the words of each role.")
@pass_call
def show(call: Call, quest_id: str, *, full: bool) -> None:
    """Show a quest: its items, the acting roles, the cost, and the open questions."""
    workplace = call.workplace()
    view = load_view(workplace, _found(load_world(workplace.db), quest_id).id)
    if call.json:
        print_json(view)
    else:
        say("\n".join((quest_drawing if full else quest_table)(view, call)))


@command("plan", example="crew quest plan plan.json\ncrew quest plan - < plan.json")
@click.argument("file")
@pass_call
def plan(call: Call, file: str) -> None:
    """Hand in the items of a quest from a JSON file; for the agent that plans it."""
    token = os.environ.get("CREW_TOKEN")
    if not token:
        raise NeedsLogin(
            "only the step that plans can hand in a plan, and CREW_TOKEN is not set",
            hint="a person changes the items with `crew edit`, `crew dep` and `crew close`",
        )
    args = {"token": token, "steps": _steps(file, call.directory)}
    reply = ask_with_token(Request(verb="plan_steps", args=args), find=call.workplace)
    if call.json:
        print_json({"reply": reply})
    else:
        say(str(reply))


def _steps(file: str, directory: Path) -> object:
    try:
        is_stdin = file == "-"
        text = text_or_stdin(file) if is_stdin else (directory / file).read_text(encoding="utf-8")
        found = json.loads(text or "")
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"{file} cannot be read: {error}", hint="it must be JSON", code="unreadable_file"
        ) from error
    return found["steps"] if isinstance(found, dict) and "steps" in found else found


@command("cancel", example="crew quest cancel 12")
@quest_argument
@click.option("--reason", help="Why.")
@pass_call
def cancel(call: Call, quest_id: str, reason: str | None) -> None:
    """Cancel a quest: its agents are ended, and all their work is kept."""
    workplace = call.workplace()
    quest_id = _found(load_world(workplace.db), quest_id).id
    cancel_quest(workplace, quest_id, reason=reason or "")
    if call.json:
        print_json({"id": quest_id, "state": "cancelled"})
    else:
        narrate(call, f"quest {quest_id} is cancelled; `crew checkpoints TASK` lists what is kept")


def _found(world: World, named: str) -> Quest:
    """A quest by its id in any spelling, or by a unique prefix."""
    wanted = task_id(named)
    begins = [one for one in world.quests if one.startswith(wanted)]
    if wanted not in world.quests and len(begins) == 1:
        wanted = begins[0]
    return find_quest(world, wanted)


for one in (new, list_quests, show, plan, cancel):
    quest.add_command(one)
