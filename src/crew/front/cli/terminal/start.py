"""`crew start` and `crew stop ID`: start a task in its own terminal, stop its agent."""

import shutil
from typing import TYPE_CHECKING, Any

import click

from crew.domain.kernel.errors import CrewError
from crew.domain.requests import Request
from crew.domain.rows.run import RunState
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.crew.spawn import checked_kind
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import one_agent, task_argument, text_or_stdin, worker_option
from crew.front.cli.tab_completion import complete_kinds
from crew.runner.readiness import check_ready
from crew.runner.requests.ask_crew import ask
from crew.runner.requests.settled import is_written
from crew.runner.views.row_views import task_view
from crew.store.fact_log import load_world
from crew.store.runner_lock import find_runner

if TYPE_CHECKING:
    from crew.workplace import Workplace

PATIENCE_S = 3600.0
"""A big repository and its `setup_command` may take a while."""


@command("start", example='crew start 12\ncrew start 12 codex -m o3 -p "mind the tests"')
@task_argument()
@click.argument("agent", required=False, shell_complete=complete_kinds)
@worker_option("AGENT")
@click.option("-m", "--model", help="Model.  [default: the agent's own]")
@click.option("-p", "--prompt", multiple=True, help="Text to add to the prompt; - reads stdin.")
@click.option("-c", "--continue", "resume", is_flag=True, help="Continue its last agent session.")
@click.option("--headless", is_flag=True, help="Hand the task to the runner, without a terminal.")
@pass_call
def start(
    call: Call,
    /,
    *,
    task: str,
    agent: str | None,
    worker: str | None,
    model: str | None,
    prompt: tuple[str, ...],
    **how: bool,
) -> None:
    """Start a task in its own terminal.

    The task gets a worktree and a tmux terminal; `crew attach` shows it, C-g detaches. A task
    that an agent is working on moves to the terminal in the same agent session; --headless gives
    it back to the runner.
    """
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    agent = one_agent(agent, worker)
    if not how["headless"]:
        check_ready(workplace)
        _need_tmux()
    args: dict[str, Any] = {
        "task": task,
        "kind": agent and checked_kind(workplace, agent),
        "default_kind": checked_kind(workplace, workplace.source.show(task).agent),
        "model": model,
        "told": "\n".join(text_or_stdin(words) or "" for words in prompt),
        **how,
    }
    run = ask(
        workplace,
        Request(verb="start", args=args),
        settled=lambda world: _is_started(world, task, headless=how["headless"]),
        timeout_s=PATIENCE_S,
    )
    _check(load_world(workplace.db), str(run), task)
    _tell(call, workplace, task, _started(workplace, task, headless=how["headless"]))


def _need_tmux() -> None:
    if shutil.which("tmux") is None:
        raise CrewError(
            "a terminal needs tmux, which is not installed",
            hint="install tmux, or hand the task to the runner: crew start ID --headless",
            code="not_installed",
        )


def _is_started(world: World, task: str, *, headless: bool) -> bool:
    run = world.runs.get(world.tasks[task].run or "")
    if run is None or not run.is_live:
        return True
    terminal = world.terminal_of(run.id)
    is_there = terminal is None if headless else terminal is not None and terminal.is_open
    return is_there and is_written(task)(world)


def _check(world: World, run: str, task: str) -> None:
    failed = world.runs.get(run)
    if failed is not None and failed.state == RunState.FAILED:
        raise CrewError(
            f"task {task} did not start: {failed.error}",
            hint=f"`crew logs {task}` shows why",
            code="start_failed",
        )


def _started(workplace: "Workplace", task: str, *, headless: bool) -> str:
    if not headless:
        return f"task {task} is under way; `crew attach {task}` shows it"
    if find_runner(workplace.lock_file) is None:
        return f"task {task} is handed to the runner; none is up: `crew run` starts one"
    return f"task {task} is handed to the runner"


def stop_task(call: Call, named: str) -> None:
    """Stop work on a task: end its terminal, or the step of its agent."""
    workplace = call.workplace()
    task = workplace.source.resolve(named)

    def settled(world: World) -> bool:
        run = world.runs.get(world.tasks[task].run or "")
        terminal = world.terminal_of(run.id) if run else None
        is_over = terminal is None and (run is None or not run.stopping or not run.is_live)
        return is_over and is_written(task)(world)

    ask(workplace, Request(verb="stop_task", args={"task": task}), settled=settled)
    _tell(call, workplace, task, f"task {task} is stopped; `crew start {task} -c` continues it")


def _tell(call: Call, workplace: "Workplace", task: str, words: str) -> None:
    if call.json:
        print_json(task_view(workplace.source.show(task), load_world(workplace.db)))
    else:
        narrate(call, words)
