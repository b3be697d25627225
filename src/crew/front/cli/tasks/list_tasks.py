"""`crew list` and `crew ready`: list the tasks, one a line."""

import gc
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import task_id, terminal_name
from crew.domain.rows.agent import Agent
from crew.domain.rows.task import FINISHED, TaskState
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json, table
from crew.front.cli.tab_completion import complete_tasks
from crew.front.cli.terminal.open_terminals import runs_at_terminals
from crew.front.cli.watching.open_questions import asked_words, count_words, open_questions
from crew.runner.pause_views import pause_lines, task_pause
from crew.store.fact_log import load_rows, load_world
from crew.store.quick_rows import (
    QuickWorld,
    load_pauses,
    load_questions,
    load_queues,
    load_unmerged,
)
from crew.store.runner_lock import find_runner

if TYPE_CHECKING:
    from crew.domain.rows.question import Question
    from crew.domain.rows.run import Run
    from crew.domain.rows.task import Task
    from crew.tasks.source_snapshot import Items
    from crew.workplace import Workplace

HEAD = ("ID", "STATUS", "PRI", "AGENT", "TITLE")
STATUSES = [str(state) for state in TaskState]


@command("list", example="crew list\ncrew list --status error --label backend\ncrew ls -a --json")
@click.option("-a", "--all", "everything", is_flag=True, help="Also merged and closed tasks.")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(STATUSES),
    help="Only tasks with this status (repeatable).",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    help="Only tasks with this label (repeatable; all must match).",
)
@click.option(
    "--parent", metavar="ID", shell_complete=complete_tasks, help="Only children of this task."
)
@click.option("--ready", is_flag=True, help="Only tasks that could start now, the next one first.")
@click.option("--namespace", metavar="NS", help="The tasks of another namespace.")
@click.option("--all-namespaces", is_flag=True, help="The tasks of all namespaces.")
@pass_call
def list_tasks(
    call: Call, /, *, namespace: str | None, all_namespaces: bool, **wanted: Any
) -> None:
    """List the open tasks.

    Merged and closed tasks are hidden unless -a or --status asks for them; done ones are shown,
    since they still wait for their merge.
    """
    # Ten thousand tasks are many small objects and no garbage: a collection doubles the time.
    gc.disable()
    workplace = call.workplace()
    wish = Wish(**wanted)
    sessions = runs_at_terminals(workplace.folder, workplace.db)
    if namespace is not None or all_namespaces:
        from crew.front.cli.tasks.list_namespaces import list_namespaces  # noqa: PLC0415 - for few lists

        list_namespaces(call, workplace, wish, None if all_namespaces else namespace)
        return
    items = workplace.snapshot().by_id
    landed = load_queues(workplace.db)
    if wish.parent:
        wish = replace(wish, parent=_parent(workplace, items, wish.parent))
    chosen = choose(wish, items, could_start(workplace) if wish.ready else None)
    if call.json:
        from crew.runner.views.row_views import task_view  # noqa: PLC0415 - only with --json

        world = load_world(workplace.db)
        asked = _asked(open_questions(world.questions.values()))
        print_json(
            [
                {
                    **task_view(items[task], world),
                    "questions": [one.id for one in asked[task]],
                    "paused": task_pause(workplace, world, task),
                }
                for task in chosen
            ]
        )
    else:
        _print(call, workplace, Shown(chosen=chosen, items=items, landed=landed, sessions=sessions))


def _parent(workplace: "Workplace", items: "Items", named: str) -> str:
    """The full id of a parent, which may be a task that is gone and still has children."""
    bare = task_id(named)
    is_gone = bare not in items and bare in items.column("parent").values()
    return bare if is_gone else workplace.source.resolve(named)


@frozen
class Wish:
    """Which tasks to list."""

    everything: bool = False
    statuses: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    parent: str | None = None
    ready: bool = False


@frozen
class Shown:
    """What to print: the tasks, and more about those that landed or are at terminals."""

    chosen: list[str]
    items: "Items"
    landed: QuickWorld
    sessions: "Mapping[str, Run]"


def choose(wish: Wish, items: "Items", ready: Sequence[str] | None = None) -> list[str]:
    """The ids of the matching tasks, in the order of the list, or of those that are `ready`."""
    hidden = () if wish.everything else FINISHED
    shown = set(wish.statuses) or {state for state in TaskState if state not in hidden}
    chosen = [task for task, state in items.column("status").items() if state in shown]
    if wish.labels:
        chosen = [task for task in chosen if set(wish.labels) <= set(items[task].labels)]
    if wish.parent:
        parent, parents = task_id(wish.parent), items.column("parent")
        chosen = [task for task in chosen if parents[task] == parent]
    if ready is not None:
        among = set(chosen)
        chosen = [task for task in ready if task in among]
    return chosen


@command("ready", example="crew ready\ncrew ready --json")
@click.option(
    "--label",
    "labels",
    multiple=True,
    help="Only tasks with this label (repeatable; all must match).",
)
@click.pass_context
def ready(ctx: click.Context, *, labels: tuple[str, ...]) -> None:
    """List the tasks that could start now."""
    ctx.invoke(list_tasks, labels=labels, ready=True)


def could_start(workplace: "Workplace", namespace: str | None = None) -> list[str]:
    """The tasks that an agent could be given now, the next one first.

    The rule is that of `crew assign` and of the runner, on the tasks as their source has them now.
    No agent works on another namespace, so its tasks are read into a world of their own.
    """
    from crew.domain.lead_choice import LEADS  # noqa: PLC0415 - a plain list needs no rules
    from crew.domain.tasks.readiness import startable  # noqa: PLC0415
    from crew.runner.arrivals import with_source  # noqa: PLC0415

    world = with_source(workplace, namespace)
    return [task.id for task in startable(world, LEADS, workplace.rules)]


def _print(call: Call, workplace: "Workplace", shown: Shown) -> None:
    agents = load_rows(workplace.db, "agent").values()
    holders = {a.task: a.id for a in agents if isinstance(a, Agent) and a.task}
    at_terminals = shown.sessions.items()
    holders |= {task: f"{run.agent_kind} ({terminal_name(task)})" for task, run in at_terminals}
    questions = load_questions(workplace.db)
    if shown.chosen:
        notes = _notes(load_unmerged(workplace.db), questions, shown.landed.tasks.values())
        landed = shown.landed.tasks
        table(HEAD, rows(shown.chosen, shown.items, holders, landed=landed, notes=notes), call)
    elif shown.items:
        narrate(call, "no such task among the open ones: `crew list -a` shows all")
    else:
        narrate(call, 'no tasks yet: crew new --title "…" makes one')
    if questions:
        narrate(call, f"{len(questions)} {count_words(len(questions))}")
    for words in pause_lines(load_pauses(workplace.db)):
        narrate(call, words)
    if shown.landed.queues:
        from crew.front.cli.watching.ps import deliveries  # noqa: PLC0415 - only once work was merged

        runner_up = find_runner(workplace.lock_file) is not None
        for words in deliveries(shown.landed, runner_up=runner_up):
            narrate(call, words)


def _asked(questions: "Iterable[Question]") -> "Mapping[str, list[Question]]":
    found: defaultdict[str, list[Question]] = defaultdict(list)
    for one in questions:
        found[one.task].append(one)
    return found


def _notes(
    unmerged: Iterable[str], questions: "Iterable[Question]", landed: "Iterable[Task]"
) -> Iterator[tuple[str, str]]:
    """What a task waits for besides its dependencies: a merge, a delivery, or an answer."""
    for task in unmerged:
        yield task, f"(waits for crew merge {task})"
    for one in landed:
        yield one.id, f"(landed, not in {one.target} yet)"
    for question in open_questions(questions):
        yield question.task, f"({asked_words(question)})"


def rows(
    chosen: list[str],
    items: "Items",
    holders: Mapping[str, str],
    *,
    landed: Collection[str] = (),
    notes: Iterable[tuple[str, str]] = (),
) -> Iterator[tuple[str, ...]]:
    """The rows, made from columns: to build ten thousand task objects would take longer."""
    status, priority, agent = map(items.column, ("status", "priority", "agent"))
    titles = _titles(items, status, landed)
    for task, words in notes:
        if task in titles:
            titles[task] += f" {words}"
    for task in chosen:
        yield (
            task,
            status[task],
            str(priority[task]),
            holders.get(task) or agent[task] or "-",
            titles[task],
        )


def _titles(items: "Items", status: Mapping[str, str], landed: Collection[str]) -> dict[str, str]:
    """The titles with labels and blockers; for an unreadable task, the reason."""
    titles, labels, deps, corrupt = map(items.column, ("title", "labels", "deps", "corrupt"))
    finished = {task for task, state in status.items() if state in FINISHED and not corrupt[task]}
    for task in [task for task, value in labels.items() if value]:
        titles[task] += f" [{', '.join(labels[task])}]"
    for task in [task for task, value in deps.items() if value and status[task] == TaskState.TODO]:
        if waits_for := [dep for dep in deps[task] if dep not in finished and dep not in landed]:
            titles[task] += f" (blocked by {', '.join(waits_for)})"
    return titles | {task: f"[corrupt] {why}" for task, why in corrupt.items() if why}
