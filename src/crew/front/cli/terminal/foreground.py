"""Drives one task in the foreground: through the runner if one is up, else in this process."""

import sys
import time
from typing import TYPE_CHECKING, Any

from crew.domain.kernel.errors import CheckFailed, CrewError, Interrupted, TryLater
from crew.domain.lead_choice import LEADS
from crew.domain.requests import Request
from crew.domain.rows.agent import AgentState
from crew.domain.rows.question import Question
from crew.domain.rows.task import FINISHED, Task
from crew.domain.scope import Scope
from crew.domain.tasks.readiness import is_ready
from crew.domain.world import World
from crew.front.cli.call import Call
from crew.front.cli.crew.merge import lands_later, late
from crew.front.cli.crew.narration import narrated
from crew.front.cli.crew.run_command import interrupts, open_log
from crew.front.cli.crew.unfinished import why_not
from crew.front.cli.exit_codes import INTERRUPTED, error_document
from crew.front.cli.output import line, narrate, print_json
from crew.front.cli.setup.gate_notice import tell_gate
from crew.front.mcp.autostart import mcp_server
from crew.runner.readiness import check_ready
from crew.runner.requests.ask_crew import ask
from crew.runner.run_crew import RunnerOptions, run_crew
from crew.runner.runner import Runner
from crew.runner.views.row_views import run_view
from crew.store.fact_log import load_world
from crew.store.runner_lock import LockHeld, find_runner

if TYPE_CHECKING:
    from crew.workplace import Workplace

LOOK_EVERY_S = 0.2
LONGEST_REASON = 1000


def drive(call: Call, workplace: "Workplace", task: str) -> int:
    """Continue the task and wait until it rests; returns the exit code.

    If the runner that works on it ends, this process takes its place.
    """
    kind = workplace.settings.agents.worker_default
    request = Request(verb="go_on", args={"task": task, "default_kind": kind})
    while True:
        run = _follow if _is_runner_up(workplace) else _run_here
        code = run(call, workplace, request, task)
        if code is None:
            continue
        world = load_world(workplace.db)
        question = _open_question(world, task)
        if code or question is None or not _answered(call, workplace, question):
            return _tell(call, world, task, code)


def _is_runner_up(workplace: "Workplace") -> bool:
    return find_runner(workplace.lock_file) is not None


def _follow(call: Call, workplace: "Workplace", request: Request, task: str) -> int | None:
    """Follow the runner until the task rests; Ctrl-C stops only that. None if the runner ended."""
    try:
        ask(workplace, request)
        with narrated(call, workplace, task=task):
            while _is_runner_up(workplace):
                if _is_at_rest(load_world(workplace.db), task):
                    return 0
                time.sleep(LOOK_EVERY_S)
    except KeyboardInterrupt:
        narrate(call, f"the runner continues task {task}; `crew resume {task}` follows it again")
        return INTERRUPTED
    narrate(call, f"the runner has ended; task {task} continues in this process")
    return None


def _run_here(call: Call, workplace: "Workplace", request: Request, task: str) -> int | None:
    """Be the runner for this task only; None if another one started first.

    Other processes may add their tasks to this runner; Ctrl-C ends the step at once.
    """

    def prepare(runner: Runner) -> None:
        runner.take_in()
        runner.heed(request)

    check_ready(workplace)
    tell_gate(call, workplace)
    open_log(workplace)
    try:
        with narrated(call, workplace) as tell:
            options = RunnerOptions(
                drain=True,
                scope=Scope(tasks=(task,)),
                patient=False,
                interrupts=interrupts(call, tell),
            )
            runner = run_crew(workplace, prepare, options=options, beside=mcp_server)
    except LockHeld:
        return None
    if not runner.stopping or _is_at_rest(runner.engine.world, task):
        return 0
    narrate(call, f"everything is kept; `crew resume {task}` continues it")
    return INTERRUPTED if runner.interrupted else TryLater.exit_code


def _is_at_rest(world: World, task: str) -> bool:
    """Whether nothing more happens by itself: it is finished, or only a person can continue it."""
    row = world.tasks[task]
    if row.state in FINISHED or row.awaits_delivery:
        return row.state in FINISHED or _waits(world, row) != ""
    if row.is_queued:
        return lands_later(world, row)
    run = world.runs.get(row.run or "")
    if run is None or not run.is_live:
        return not is_ready(world, row, LEADS)
    agent = world.agents.get(run.agent or "")
    is_stuck = agent is not None and agent.state == AgentState.STUCK
    return bool(run.question or world.terminal_of(run.id) or is_stuck) or not row.is_there


def _waits(world: World, task: Task) -> str:
    """What blocks the delivery of a landed task, until a person removes it."""
    found = world.queues.get(task.target)
    return found.waiting if found is not None and task.awaits_delivery else ""


def _open_question(world: World, task: str) -> Question | None:
    found = (q for q in world.questions.values() if q.task == task and q.is_open)
    return next(found, None)


def _answered(call: Call, workplace: "Workplace", question: Question) -> bool:
    """Ask the question at this terminal; False if it was not answered."""
    if call.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"\n{question.question}\n{question.context}\n> ", end="", file=sys.stderr, flush=True)
    text = sys.stdin.readline().strip()
    if text:
        ask(workplace, Request(verb="answer", args={"question": question.id, "text": text}))
    return bool(text)


def _tell(call: Call, world: World, task: str, broken_off: int) -> int:
    """Print why it ended, unless following was interrupted, which has been printed already."""
    row = world.tasks[task]
    code = broken_off or _code(row)
    failure = _failure(world, row, broken_off) if code else None
    if call.json:
        print_json(_document(world, row, failure))
        return code
    if failure is None:
        narrate(call, f"task {task} is {row.state}")
    elif not broken_off:
        raise failure
    return code


def _failure(world: World, task: Task, broken_off: int) -> CrewError:
    """Why the task is not finished."""
    if broken_off:
        hint = f"`crew resume {task.id}` continues it"
        if broken_off == INTERRUPTED:
            return Interrupted("interrupted", hint=hint)
        return TryLater(f"task {task.id} was stopped before it was finished", hint=hint)
    if task.awaits_delivery or lands_later(world, task):
        return late(world, task)
    why = line(why_not(world, task), limit=LONGEST_REASON)
    return CheckFailed(f"task {task.id} is not finished: {why}", hint=_hint(world, task))


def _code(task: Task) -> int:
    if task.awaits_delivery:
        return TryLater.exit_code
    return 0 if task.state in FINISHED else CheckFailed.exit_code


def _document(world: World, task: Task, failure: CrewError | None) -> dict[str, Any]:
    """The run as `crew runs` shows it, and why it ended; a failure is an error as of any command.

    The `reason` names what the run itself has as its error.
    """
    run = world.runs.get(task.run or "")
    why = None if task.state in FINISHED else _waits(world, task) or why_not(world, task)
    shown = {**(run_view(run) if run else {"task": task.id}), "status": task.state, "reason": why}
    return {**shown, **error_document(failure)} if failure else shown


def _hint(world: World, task: Task) -> str:
    if question := _open_question(world, task.id):
        return f'crew answer {question.id} "…", then `crew resume {task.id}`'
    run = world.runs.get(task.run or "")
    if run is not None and world.terminal_of(run.id):
        return f"`crew attach {task.id}` shows it"
    return f"`crew logs {task.id}` shows its steps; `crew resume {task.id}` tries again"
