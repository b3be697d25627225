"""`crew merge`: merges a done task into its target branch now."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from crew.domain.kernel.errors import CheckFailed, CrewError, TryLater
from crew.domain.kernel.quotation import MARK
from crew.domain.merging.merge_requests import accept_hint, waits_for_answer
from crew.domain.merging.queue_search import landing_waits
from crew.domain.requests import Request, find_task
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.runs.complaints import WHY
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import line as one_line
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import subject_argument
from crew.front.cli.resolve_ids import task_of
from crew.front.cli.setup.gate_notice import check_gate
from crew.runner.requests.ask_crew import ACCEPTING, LANDING, ask
from crew.runner.views.row_views import task_view
from crew.store.database import open_database
from crew.store.fact_log import load_world

if TYPE_CHECKING:
    from crew.workplace import Workplace

PATIENCE_S = 24 * 3600.0
"""The gate may take long, and it has a limit of its own."""

SILENT_S = 2.0
LOOK_EVERY_S = 0.5


@command("merge", example="crew merge 12\ncrew merge A\ncrew merge 12 --accept")
@subject_argument()
@click.option(
    "--accept",
    is_flag=True,
    help="Take a merge that was refused because it drops a part of one side.",
)
@pass_call
def merge(call: Call, subject: str, *, accept: bool) -> None:
    """Merge a done task now.

    It joins the queue, is tested together with what landed before it, and is delivered to the
    target branch. With --accept, the check that a merge keeps both sides is overruled for the
    commit that it refused last; the gate and the reviews of the task must still pass.

    Exit code 6 if a check fails or the queue sent it back, 5 if it waits for an answer or no merge
    was refused, and 75 if it cannot land yet: the error names what is in the way and what to do.
    """
    workplace = call.workplace()
    task = task_of(workplace, subject)
    row = load_world(workplace.db).tasks.get(task)
    is_merged = row is not None and row.state == TaskState.MERGED
    if not is_merged:
        check_gate(workplace, workplace.root)
    verb = "look" if is_merged else "accept" if accept else "merge"

    def settled(world: World) -> bool:
        now = world.tasks.get(task)
        if now is None:
            return False
        run = world.runs.get(now.run or "")
        if run is not None and run.state == RunState.REVIEWING:
            return not accept or run.question != ""
        return now.state != TaskState.DONE or lands_later(world, now) or not _moves(world, now)

    with _narrated(call, workplace, task):
        ask(
            workplace,
            Request(verb=verb, args={"task": task}),
            settled=settled,
            only=ACCEPTING if accept else LANDING,
            timeout_s=PATIENCE_S,
        )
    _tell(call, workplace, task)


def _moves(world: World, task: Task) -> bool:
    """Whether a done task can still get on by itself: a gate runs, or others are ahead of it.

    A queue that gets new commits too fast continues once they stop; every other obstacle stays
    until a person removes it.
    """
    queue = world.queues.get(task.target)
    is_blocked = queue is not None and queue.waiting != ""
    if task.awaits_delivery:
        return not is_blocked
    return task.is_queued and (not is_blocked or (queue is not None and queue.is_outrun))


@contextmanager
def _narrated(call: Call, workplace: "Workplace", task: str) -> Iterator[None]:
    """Print what the task waits for, each time that changes."""
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(call, workplace, task, over), daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join(timeout=5)


def _watch(call: Call, workplace: "Workplace", task: str, over: threading.Event) -> None:
    if over.wait(SILENT_S):
        return
    db, said = open_database(workplace.folder / "crew.db"), ""
    while True:
        with suppress(CrewError):
            words = waits_for(load_world(db), task)
            if words != said:
                narrate(call, f"task {task} {words}")
            said = words
        if over.wait(LOOK_EVERY_S):
            return


def waits_for(world: World, task: str) -> str:
    """What a task that is to be merged waits for now."""
    row = world.tasks.get(task)
    run = world.runs.get(row.run or "") if row is not None else None
    if run is not None and run.state == RunState.REVIEWING:
        return "is checked: gate and reviews"
    if row is None or not (row.is_queued or row.awaits_delivery):
        return "waits for another crew command to end"
    queue = world.queues.get(row.target)
    why = f": {queue.waiting}" if queue is not None and queue.waiting else ""
    if row.awaits_delivery:
        return f"has landed; its delivery to {row.target} is under way{why}"
    is_first = queue is not None and any(entry[0] == task for entry in queue.chain)
    if is_first:
        return f"is tested together with what landed for {row.target}{why}"
    return f"waits for its turn in the merge queue of {row.target}{why}"


def _why(run: Run) -> str:
    if not run.error and run.ask == Ask.LOST_SIDE:
        return WHY[Ask.LOST_SIDE]
    if not run.error and run.merge_commit and run.ask not in {Ask.RED_GATE, Ask.REVIEW}:
        files = ", ".join(map(one_line, run.merge_paths))
        return f"it conflicts with {run.merge_commit[:12]} in {files}"
    if run.ask == Ask.RED_GATE and not run.error:
        _, _, last = run.notes.rstrip().rpartition("\n")
        return f"{WHY[Ask.RED_GATE]}: {one_line(last.removeprefix(MARK), limit=300)}"
    return one_line((run.error or run.notes).strip().partition("\n")[0].removeprefix(MARK))


def _tell(call: Call, workplace: "Workplace", task: str) -> None:
    world = load_world(workplace.db)
    row = find_task(world, task)
    if row.awaits_delivery or lands_later(world, row):
        raise late(world, row)
    if row.state == TaskState.DONE:
        raise _held_up(world, row)
    if row.state != TaskState.MERGED:
        raise _not_merged(world, row)
    if call.json:
        print_json(task_view(workplace.source.show(task), world))
    else:
        queue = world.queues.get(row.target)
        narrate(call, f"task {task} is merged into {row.target}")
        if queue is not None and queue.remedy:
            narrate(call, f"it has submodules that moved; this brings their files: {queue.remedy}")


def _not_merged(world: World, task: Task) -> CrewError:
    run = world.runs.get(task.run or "")
    if run is not None and run.is_live and run.merge_accepted == run.merge_refused != "":
        return _accepted(run)
    why = _why(run) if run else ""
    return CheckFailed(
        f"task {task.id} was not merged, it is {task.state}{': ' + why if why else ''}",
        hint=f"{accept_hint(world, task) or f'`crew show {task.id}` shows why'}; "
        "`crew run` lets an agent continue it",
    )


def _accepted(run: Run) -> CrewError:
    """The error for a task whose merge is accepted while something else is due before it lands."""
    if run.error:
        why = f"could not be checked: {one_line(run.error)}"
    elif run.stepping:
        why = "an agent is at work on it; the merge counts if it leaves that commit as it is"
    else:
        why = "more of its work is due before it can land"
    return TryLater(
        f"the merge {run.merge_accepted[:12]} of task {run.task} is accepted; {why}",
        hint="`crew run` continues it",
        code="accepted",
    )


def _held_up(world: World, task: Task) -> CrewError:
    """The error for a done task that has not landed, and does not land by itself."""
    if task.conflict:
        return waits_for_answer(task)
    queue = world.queues.get(task.target)
    why = f": {queue.waiting}" if queue is not None and queue.waiting else ""
    where = f"waits in the merge queue of {task.target}" if task.is_queued else "is in no queue"
    return TryLater(
        f"task {task.id} {where}{why}",
        hint=(queue.remedy if queue else "") or f"`crew merge {task.id}` tries again",
    )


def lands_later(world: World, task: Task) -> bool:
    """Whether a task in the merge queue waits for a person, such as for a key that is locked."""
    queue = world.queues.get(task.target)
    return task.is_queued and queue is not None and landing_waits(queue)


def late(world: World, task: Task) -> TryLater:
    """The error for a task whose delivery or landing still waits."""
    queue = world.queues.get(task.target)
    words = "is tested, and its landing on"
    if task.awaits_delivery:
        words = "has landed, and its delivery to"
    return TryLater(
        f"task {task.id} {words} {task.target} waits"
        + (f": {queue.waiting}" if queue is not None and queue.waiting else ""),
        hint=(queue.remedy if queue else "") or f"`crew merge {task.id}` tries again",
    )
