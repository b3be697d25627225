"""`crew comment`: adds a comment to a task, or requests changes."""

import os
import pwd
import time
from typing import TYPE_CHECKING, Any

import click

from crew.domain.kernel.errors import UsageError
from crew.domain.requests import Request
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.echo import show_reply, show_task
from crew.front.cli.output import narrate
from crew.front.cli.params import task_argument, text_or_stdin
from crew.front.cli.terminal.open_terminals import runs_at_terminals
from crew.runner.requests.ask_crew import ask, wake
from crew.runner.requests.ask_with_token import ask_own
from crew.runner.requests.settled import is_written
from crew.store.fact_log import load_world
from crew.store.runner_lock import find_runner
from crew.tasks.task_source import NewComment
from crew.tasks.validate_task import checked_comment

if TYPE_CHECKING:
    from crew.workplace import Workplace

KINDS = ("report", "message", "suggestion", "friction")
EXAMPLE = """crew comment 12 'use the new API'
git diff | crew comment 12 - --type report
crew comment 12 --request-changes 'the empty name is not handled'"""


@command("comment", example=EXAMPLE)
@task_argument()
@click.argument("text")
@click.option("--author", help="Name of the author.  [default: you, or the agent of this worktree]")
@click.option("--type", "kind", type=click.Choice(KINDS), help="Kind of comment.")
@click.option("--tag", "tags", multiple=True, help="A tag (repeatable).")
@click.option("-R", "--request-changes", is_flag=True, help="Send a done task back with this text.")
@click.option(
    "--edit", "index", type=click.IntRange(0), metavar="N", help="Replace the text of comment N."
)
@pass_call
def comment(
    call: Call, /, task: str, text: str, *, request_changes: bool, index: int | None, **flags: Any
) -> None:
    """Comment on a task.

    Comments count from 0, as `crew show --json` lists them. Requested
    changes put a done task in progress again: the text is typed into its terminal, or given to
    the next agent if it has no terminal.
    """
    words = text_or_stdin(text) or ""
    if call.is_shut_in():
        show_reply(call, ask_own("comment", {"text": words, "kind": flags["kind"] or ""}))
        return
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    if index is None:
        _say(workplace, task, _comment(words, **flags), request_changes=request_changes)
        if request_changes:
            narrate(call, _who_gets_them(workplace, task))
    elif request_changes or any(flags.values()):
        raise UsageError("--edit changes only the text", hint="leave the other flags out")
    else:
        workplace.source.change_comment(task, index, words)
    wake(workplace)
    show_task(call, workplace, task)


def _comment(
    text: str, *, author: str | None, kind: str | None, tags: tuple[str, ...]
) -> NewComment:
    said = NewComment(
        author=author or os.environ.get("CREW_AGENT") or _user(),
        text=text,
        at=time.time(),
        kind=kind or "",
        tags=tags,
    )
    return checked_comment(said)


def _say(workplace: "Workplace", task: str, said: NewComment, *, request_changes: bool) -> None:
    """Send the request first, so that a refused one leaves no comment behind."""
    if request_changes:
        runs_at_terminals(workplace.folder, workplace.db)  # one may have ended without a report
        request = Request(verb="changes", args={"task": task, "notes": said.text})
        ask(workplace, request, settled=lambda world: _is_passed_on(world, task))
    workplace.source.comment(task, said)


def _is_passed_on(world: World, task: str) -> bool:
    terminal = world.terminal_of(world.tasks[task].run or "")
    is_due = terminal is not None and terminal.untyped and not (terminal.held or terminal.dialog)
    return is_written(task)(world) and not is_due


def _who_gets_them(workplace: "Workplace", task: str) -> str:
    world = load_world(workplace.db)
    terminal = world.terminal_of(world.tasks[task].run or "")
    if terminal is not None and terminal.has_process:
        how = f"the text was typed into its terminal (crew attach {task})"
    elif find_runner(workplace.lock_file) is not None:
        how = "an agent gets the text with its next step"
    else:
        how = "an agent gets the text with its next step (crew run)"
    return f"task {task} is in progress again; {how}"


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "unknown"
