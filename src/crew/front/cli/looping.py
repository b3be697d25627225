"""`crew loop` and `crew resume`: one task, in the foreground, through rounds of work and review."""

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from crew.domain.agent import AgentState
from crew.domain.errors import CheckFailed, Conflict, NotFound, UsageError
from crew.domain.requests import Request
from crew.domain.run import Run
from crew.domain.task import FINISHED
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command import command
from crew.front.cli.crew_agents import checked_kind
from crew.front.cli.narration import narrated
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import complete_kinds, text_or_stdin
from crew.front.cli.run import open_log
from crew.front.mcp.beside import mcp_server
from crew.runner.asking import ask, wake
from crew.runner.loop import Runner, run_crew
from crew.runner.views import run_view
from crew.store.facts import load_world
from crew.store.lock import find_runner
from crew.tasks.source import NewTask

if TYPE_CHECKING:
    from crew.runner.workplace import Workplace

LONGEST_TITLE = 80
LOOK_EVERY_S = 0.2


@command("loop", example='crew loop "Fix the login" --review single --proof "make test"')
@click.argument("prompt")
@click.option("--agent", "kind", metavar="A", shell_complete=complete_kinds, help="Who works.")
@click.option("--reviewer", metavar="B", shell_complete=complete_kinds, help="Who reviews.")
@click.option("--review", "mode", type=click.Choice(["none", "single", "claudex"]), help="How.")
@click.option("--max-rounds", type=click.IntRange(1), default=20, help="Give up after these; 20.")
@click.option("--done", "done_word", default="DONE", help="The word that ends the work; DONE.")
@click.option("--proof", default="", metavar="CMD", help="A command that must succeed too.")
@pass_call
def loop(call: Call, /, *, prompt: str, kind: str | None, **wishes: Any) -> int:
    """Run one task through work and review, in the foreground.

    It ends when the task is merged (0), or when it failed or waits for somebody (6). Ctrl-C keeps
    everything as it is, and `crew resume` goes on.
    """
    workplace = call.workplace()
    words = text_or_stdin(prompt) or ""
    title = next((text.strip() for text in words.splitlines() if text.strip()), None)
    if title is None:
        raise UsageError("the prompt is empty", hint="say what is to be done")
    worker = checked_kind(workplace, kind)
    args = {
        "kind": worker,
        "default_kind": worker,
        "headless": True,
        "reviewers": _reviewers(workplace, worker, wishes.pop("mode"), wishes.pop("reviewer")),
        **wishes,
    }
    task = workplace.source.add(NewTask(title=title[:LONGEST_TITLE], body=words), at=time.time())
    wake(workplace)
    return drive(call, workplace, Request(verb="start", args={**args, "task": task}))


def _reviewers(
    workplace: "Workplace", worker: str, mode: str | None, named: str | None
) -> tuple[str, ...] | None:
    """None leaves it to the config."""
    if mode is None and named is None:
        return None
    if mode == "none":
        return ()
    agents = workplace.settings.agents
    reviewer = agents.named(named or agents.reviewer_default).name
    return (worker, reviewer) if mode == "claudex" else (reviewer,)


@command("resume", example="crew resume 12.1\ncrew resume 12")
@click.argument("run")
@pass_call
def resume(call: Call, run: str) -> int:
    """Go on with a run that was interrupted or failed.

    It is driven in the foreground, as `crew loop` does it.
    """
    workplace = call.workplace()
    found = _find_run(load_world(workplace.db), run)
    if found.is_live:
        return drive(call, workplace, Request(verb="look", args={}), task=found.task)
    args = {
        "task": found.task,
        "default_kind": found.agent_kind,
        "headless": True,
        "resume": True,
        "reviewers": found.reviewers,
        "proof": found.proof,
        "done_word": found.done_word,
    }
    return drive(call, workplace, Request(verb="start", args=args))


def _find_run(world: World, named: str) -> Run:
    task = world.tasks.get(named.removeprefix("#"))
    found = world.runs.get(named) or world.runs.get((task.run if task else None) or "")
    if found is None:
        raise NotFound(f"there is no run {named!r}", hint="`crew runs` lists them")
    current = world.tasks[found.task].run
    if current != found.id:
        raise Conflict(f"run {found.id} is not the last one", hint=f"`crew resume {current}`")
    return found


def drive(call: Call, workplace: "Workplace", request: Request, *, task: str = "") -> int:
    """Ask for it, then watch it to its end; without a runner, be one for this task alone."""
    task = task or str(request.args["task"])
    while True:
        code = _drive_once(call, workplace, request, task)
        question = _open_question(load_world(workplace.db), task)
        if code or question is None or not _answered(call, workplace, question):
            break
        request = Request(verb="look", args={})
    return code or _tell(call, workplace, task)


def _drive_once(call: Call, workplace: "Workplace", request: Request, task: str) -> int:
    if find_runner(workplace.lock_file) is not None:
        ask(workplace, request)
        with narrated(call, workplace):
            while _is_moving(load_world(workplace.db), task):
                time.sleep(LOOK_EVERY_S)
        return 0
    open_log(workplace)
    with narrated(call, workplace):
        runner = run_crew(
            workplace,
            lambda made: _prepare(made, request, task),
            drain=True,
            beside=mcp_server,
        )
    if runner.interrupted:
        narrate(call, f"everything is kept; `crew resume {task}` goes on")
    return 130 if runner.interrupted else 0


def _prepare(runner: Runner, request: Request, task: str) -> None:
    """Only this task, and an agent that is free for it; Ctrl-C ends the step at once."""
    runner.take_in()
    runner.heed(request)
    runner.patient = False
    runner.engine.rules = replace(runner.engine.rules, only_task=task)
    agents = runner.engine.world.agents
    if not any(a.state == AgentState.IDLE or a.task == task for a in agents.values()):
        kind = str(request.args.get("default_kind") or "")
        kind = kind or runner.workplace.settings.agents.worker_default
        runner.heed(Request(verb="spawn", args={"kind": kind, "count": 1}))


def _is_moving(world: World, task: str) -> bool:
    row = world.tasks[task]
    run = world.runs.get(row.run or "")
    return row.is_queued or (run is not None and run.is_live and not run.question)


def _open_question(world: World, task: str) -> Any:
    found = (q for q in world.questions.values() if q.task == task and q.is_open)
    return next(found, None)


def _answered(call: Call, workplace: "Workplace", question: Any) -> bool:
    """A person at a terminal is asked right here."""
    if call.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"\n{question.question}\n{question.context}\n> ", end="", file=sys.stderr, flush=True)
    text = sys.stdin.readline().strip()
    if text:
        ask(workplace, Request(verb="answer", args={"question": question.id, "text": text}))
    return bool(text)


def _tell(call: Call, workplace: "Workplace", task: str) -> int:
    world = load_world(workplace.db)
    row, run = world.tasks[task], world.runs[str(world.tasks[task].run)]
    if call.json:
        print_json(run_view(run))
    if row.state in FINISHED:
        narrate(call, f"task {task} is {row.state}")
        return 0
    question = _open_question(world, task)
    why = f"it asks: {question.question}" if question else run.error or f"it is {row.state}"
    hint = f'crew answer {question.id} "…"' if question else f"`crew show {task}` tells more"
    if call.json:
        return CheckFailed.exit_code
    raise CheckFailed(f"task {task} is not finished: {why}", hint=hint)
