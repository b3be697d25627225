"""`crew send`: sends a message to the agent or the reviewers of a task."""

import os
import time
from typing import TYPE_CHECKING

import click

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.names import terminal_name
from crew.domain.requests import Request
from crew.domain.rows.message import A_PERSON, MessageState
from crew.domain.rows.run import RunState
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import task_argument, text_or_stdin
from crew.front.cli.terminal.open_terminals import runs_at_terminals
from crew.runner.by_hand.task_access import has_terminal, terminal_takes, type_into
from crew.runner.requests.ask_crew import ask
from crew.runner.views.row_views import message_view, message_words
from crew.store.fact_log import load_world
from crew.store.runner_lock import find_runner

if TYPE_CHECKING:
    from crew.domain.rows.message import Message
    from crew.domain.terminals.dialogs import TerminalInput
    from crew.domain.world import World
    from crew.workplace import Workplace


@command("send", example='crew send 12 "run the tests again"\ncrew send 12 - < notes.txt')
@task_argument()
@click.argument("text")
@click.option("--no-enter", is_flag=True, help="Type the text without Enter.")
@pass_call
def send(call: Call, task: str, text: str, *, no_enter: bool) -> None:
    """Send a message to the agent or the reviewers of a task.

    It is typed into the task's terminal, with Enter; - reads it from stdin. While the terminal
    shows a dialog, the message is kept and typed afterwards; `crew answer` answers the dialog. An
    agent without a terminal gets it as a message: at once if its CLI takes messages during a step,
    else with its next step. During a review the reviewers get it in the same way, before they
    approve.
    """
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    words = text_or_stdin(text) or ""
    name = terminal_name(task)
    if not has_terminal(workplace, name):
        number = _leave_message(workplace, task, words)
        _report(call, workplace, _once_given(workplace, number))
        return
    seen = terminal_takes(workplace, task)
    if seen is None or seen.takes_text:
        seen = type_into(workplace, name, words, enter=not no_enter)
    if not seen.takes_text:
        _keep(call, workplace, task, words, seen, no_enter=no_enter)
        return
    if call.json:
        print_json({"task": task, "session": name, "sent": len(words), "state": "typed"})
    else:
        narrate(call, f"sent to task {task}")


def _keep(
    call: Call,
    workplace: "Workplace",
    task: str,
    words: str,
    seen: "TerminalInput",
    *,
    no_enter: bool,
) -> None:
    """Keep the message until the terminal takes text; text at a dialog would choose an answer."""
    why = "shows a dialog" if seen.dialog else "does not show a prompt that takes text"
    if no_enter or not words.strip():
        raise Conflict(
            f"the terminal of task {task} {why}, so nothing is typed",
            hint=f"`crew inbox` shows a dialog and how to answer it, `crew attach {task}` the "
            "terminal",
            code="no_prompt",
        )
    number = _leave_message(workplace, task, words)
    world = load_world(workplace.db)
    terminal = world.terminal_of(world.tasks[task].run or "")
    question = terminal.dialog if terminal else ""
    if call.json:
        kept = {"message": number, "sent": len(words), "state": "kept", "why": f"terminal {why}"}
        print_json({"task": task, **kept, "question": question or None})
        return
    way_out = f"`crew inbox {question}` shows it" if question else f"`crew attach {task}` shows it"
    narrate(
        call,
        f"kept, not typed: the terminal of task {task} {why}; the message is typed at the next "
        f"prompt, while a runner is up or with the next crew command ({way_out})",
    )


def _leave_message(workplace: "Workplace", task: str, words: str) -> str:
    runs_at_terminals(workplace.folder, workplace.db)  # it may have ended without a report
    sender = os.environ.get("CREW_TASK_ID")
    sender = f"task {sender}" if sender else A_PERSON
    args = {"task": task, "text": words, "sender": sender}
    return str(ask(workplace, Request(verb="message", args=args)))


def _once_given(workplace: "Workplace", number: str) -> "Message":
    """The message, as soon as the step under way has it; that takes a moment, or a whole step."""
    give_up_at = time.monotonic() + GIVEN_WITHIN_S
    while True:
        world = load_world(workplace.db)
        message = world.messages[number]
        run = world.runs.get(world.tasks[message.task].run or "")
        can_be_given = run is not None and run.stepping and find_runner(workplace.lock_file)
        is_over = time.monotonic() >= give_up_at
        if message.state != MessageState.QUEUED or not can_be_given or is_over:
            return message
        time.sleep(POLL_S)


def _report(call: Call, workplace: "Workplace", message: "Message") -> None:
    task, view = message.task, message_view(message)
    if call.json:
        told = {name: view[name] for name in ("state", "given_at", "read_at")}
        print_json({"task": task, "message": message.id, "sent": len(message.text), **told})
    elif view["given_at"]:
        narrate(call, f"message {message.id} to task {task}: {message_words(view)}")
    else:
        has_runner = find_runner(workplace.lock_file) is not None
        narrate(call, _receivers(load_world(workplace.db), message, has_runner=has_runner))


def _receivers(world: "World", message: "Message", *, has_runner: bool) -> str:
    task, number = message.task, message.id
    run = world.runs.get(world.tasks[task].run or "")
    later = f"`crew show {task}` prints when it was given"
    if run is not None and run.state == RunState.REVIEWING:
        who = f"its reviewers get message {number}, else its agent does"
        return f"task {task} is under review: {who}; {later}"
    when = "during this step or with the next one" if run and run.stepping else "with its next step"
    needs = "" if has_runner else ", once a runner is up (`crew run`)"
    return f"message {number} waits: the agent of task {task} gets it {when}{needs}; {later}"


GIVEN_WITHIN_S = 2.0
"""How long to wait for the step under way, which can take a message only at some moments."""

POLL_S = 0.05
