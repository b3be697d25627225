"""The terminal session of a task: attach to it, type into it, run something beside it."""

import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

from crew.agents.terminal import tmux
from crew.agents.terminal.tmux import Tmux
from crew.domain.kernel.errors import Conflict, NotFound, UsageError
from crew.domain.kernel.names import pane_name
from crew.domain.requests import Request, next_step
from crew.domain.rows.run import RunState
from crew.domain.rows.task import Task
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import task_argument, text_or_stdin
from crew.front.cli.terminal.open_terminals import runs_at_terminals
from crew.runner.prompts.step_orders import step_environment
from crew.runner.requests.ask_crew import ask
from crew.store.fact_log import load_world
from crew.system.processes.process import become

if TYPE_CHECKING:
    from crew.domain.rows.run import Run
    from crew.domain.world import World
    from crew.workplace import Workplace


@command("attach", example="crew attach 12")
@task_argument()
@pass_call
def attach(call: Call, task: str) -> None:
    """Show the terminal session of a task.

    C-g leaves it again, and it goes on.
    """
    workplace = call.workplace()
    name = live_pane(workplace, workplace.source.resolve(task))
    if call.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "attach needs a terminal", hint=f"`crew peek {task}` prints what the session shows"
        )
    become(tmux.attach_argv(server(workplace), name), dict(os.environ))


@command("send", example='crew send 12 "run the tests again"\ncrew send 12 - < notes.txt')
@task_argument()
@click.argument("text")
@click.option("--no-enter", is_flag=True, help="Type it and do not press Enter.")
@pass_call
def send(call: Call, task: str, text: str, *, no_enter: bool) -> None:
    """Send a message to the agent or the reviewers of a task.

    It is typed into the task's terminal session, with Enter; - reads it from stdin. An agent
    without one gets it as a message: at once if its CLI takes messages during a step, else with its
    next step. While the task is under review its reviewers get it, in the same way: nothing is
    approved before they have.
    """
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    words = text_or_stdin(text) or ""
    name = pane_name(task)
    if tmux.find_session(server(workplace), name) is None:
        _leave_message(call, workplace, task, words)
        return
    tmux.send_text(server(workplace), name, words, enter=not no_enter)
    if call.json:
        print_json({"task": task, "session": name, "sent": len(words)})
    else:
        narrate(call, f"sent to task {task}")


def _leave_message(call: Call, workplace: "Workplace", task: str, words: str) -> None:
    runs_at_terminals(workplace.folder, workplace.db)  # it may have ended without a word
    sender = os.environ.get("CREW_TASK_ID")
    sender = f"task {sender}" if sender else "a person"
    args = {"task": task, "text": words, "sender": sender}
    number = ask(workplace, Request(verb="message", args=args))
    if call.json:
        print_json({"task": task, "message": number, "sent": len(words)})
    else:
        narrate(call, _receivers(load_world(workplace.db), task))


def _receivers(world: "World", task: str) -> str:
    run = world.runs.get(world.tasks[task].run or "")
    if run is not None and run.state == RunState.REVIEWING:
        return f"task {task} is under review: its reviewers get the message, else its agent does"
    return f"the agent of task {task} gets the message now or with its next step"


@command("exec", example="crew exec 12 -- git status\ncrew exec 12 -- make test")
@task_argument()
@click.argument("argv", metavar="-- CMD…", nargs=-1, required=True, type=click.UNPROCESSED)
@pass_call
def execute(call: Call, task: str, argv: tuple[str, ...]) -> None:
    """Run a command in a task's worktree.

    It runs beside whoever works there, and its exit code is ours.
    """
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    world = load_world(workplace.db)
    row = world.tasks.get(task)
    path = workplace.root / row.worktree if row and row.worktree else None
    if row is None or path is None or not path.is_dir():
        hint = next_step(row or Task(id=task), "makes one")
        raise Conflict(f"task {task} has no worktree now", hint=hint)
    environment = {**os.environ, **_environment(workplace, world.runs.get(row.run or ""), row)}
    if shutil.which(argv[0], path=environment.get("PATH")) is None:
        raise NotFound(f"there is no command {argv[0]}", hint="check its name and your PATH")
    os.chdir(path)
    become(argv, environment)


def _environment(workplace: "Workplace", run: "Run | None", task: Task) -> dict[str, str]:
    return step_environment(workplace, run, task) if run is not None else {}


@command("_pane-ended", example="")
@click.argument("run")
@click.argument("number", type=int)
@click.argument("code", type=int)
@pass_call
def pane_ended(call: Call, run: str, number: int, code: int) -> None:
    """A terminal session says that it ended; only its own script calls this."""
    args = {"run": run, "number": number, "code": code}
    ask(call.workplace(), Request(verb="pane_ended", args=args))


def server(workplace: "Workplace") -> Tmux:
    return Tmux(folder=workplace.folder)


def live_pane(workplace: "Workplace", task: str) -> str:
    """The name of the task's session, which is there."""
    name = pane_name(task)
    if tmux.find_session(server(workplace), name) is None:
        runs_at_terminals(workplace.folder, workplace.db)  # it may have ended without a word
        row = load_world(workplace.db).tasks.get(task) or Task(id=task)
        raise Conflict(f"task {task} has no terminal session", hint=next_step(row, "opens one"))
    return name
