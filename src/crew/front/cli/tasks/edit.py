"""`crew edit`: changes the title, text, labels, status or other fields of a task."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from crew.domain.kernel.errors import Conflict, UsageError
from crew.domain.requests import Request
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import TaskItem
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.echo import show_task
from crew.front.cli.output import narrate
from crew.front.cli.params import task_argument, text_or_stdin
from crew.front.cli.tab_completion import complete_kinds, complete_tasks
from crew.front.cli.tasks.dep import add_dependency
from crew.front.cli.tasks.drafts import TaskDraft, block_number, read_draft, read_file
from crew.runner.new_tasks import refuse_unknown_agent
from crew.runner.requests.ask_crew import ask, wake
from crew.runner.requests.settled import is_written
from crew.store.fact_log import load_world
from crew.tasks.task_source import TaskChanges

if TYPE_CHECKING:
    from crew.workplace import Workplace

STATUSES = [str(state) for state in TaskState]

AT_WORK = frozenset({TaskState.IN_PROGRESS, TaskState.DONE})

MOVES = {
    ("todo", "closed"): "close",
    ("in_progress", "closed"): "close",
    ("done", "closed"): "close",
    ("error", "closed"): "close",
    ("error", "todo"): "retry",
    ("in_progress", "todo"): "retry",
}
"""The status changes that a person may make, and their requests; all others follow from work."""

WAYS = {
    "in_progress": "an agent starts a task: `crew assign`, `crew run`",
    "done": "crew itself decides when a task is done",
    "merged": "`crew merge` merges a done task",
    "error": "a task fails by itself",
}

EXAMPLE = """crew edit 12 --title 'Fix the login page' --priority 0
crew edit 12 --add-label urgent --rm-label later --if-status todo
crew edit 12 --status todo"""


@command("edit", example=EXAMPLE)
@task_argument()
@click.option("-t", "--title", help="The new title.")
@click.option("-b", "--body", help="The new text; - reads it from stdin.")
@click.option("--priority", type=click.IntRange(0, 4), help="0 (most urgent) to 4.")
@click.option("--label", "labels", multiple=True, help="The new labels (repeatable); '' clears.")
@click.option("--add-label", "add_labels", multiple=True, help="Add a label (repeatable).")
@click.option("--rm-label", "remove_labels", multiple=True, help="Remove a label (repeatable).")
@click.option(
    "--parent", metavar="ID", shell_complete=complete_tasks, help="The parent task; '' clears it."
)
@click.option("--no-parent", is_flag=True, help="Clear the parent.")
@click.option(
    "--agent", metavar="A", shell_complete=complete_kinds, help="Agent kind; '' clears it."
)
@click.option("--base", metavar="BRANCH", help="Branch to start from and to land on; '' clears it.")
@click.option("--issue", type=click.IntRange(0), metavar="N", help="GitHub issue; 0 clears it.")
@click.option("--skip-review/--review", default=None, help="Skip the review.")
@click.option(
    "--status", type=click.Choice(STATUSES), help="New status; todo reopens a failed task."
)
@click.option(
    "--if-status",
    "only_if",
    multiple=True,
    type=click.Choice(STATUSES),
    help="Change it only if it has one of these statuses (repeatable); else exit code 5.",
)
@click.option(
    "--from",
    "file",
    metavar="FILE",
    help="Read the changes from one block of a file; - reads stdin.",
)
@pass_call
def edit(
    call: Call, /, task: str, *, status: str | None, only_if: tuple[str, ...], **flags: Any
) -> None:
    """Change a task.

    Only the named fields change, all or none. With --base, work that waits in a merge queue moves
    to the queue of that branch, with the commits of the old branch that it builds on. A file
    holds one block as in `crew new --from`: the fields in its head change, and the text if the
    block has one.
    """
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    draft = _read_draft(call, flags.pop("file"), flags)
    changes = _changes(workplace, task, {**_from_draft(draft), **_named(flags)})
    if not changes and status is None and not (draft and "after" in draft.named):
        raise UsageError("no change is named", hint="`crew edit --help` lists the flags")
    _refuse(workplace, workplace.source.show(task), status, only_if)
    if "base" in changes:
        _retarget(workplace, task, changes["base"])
    if changes or only_if:
        states = frozenset(TaskState(name) for name in only_if)
        workplace.source.edit(task, TaskChanges(only_if=states, **changes))
    if draft is not None and "after" in draft.named:
        _set_dependencies(workplace, task, draft)
    wake(workplace)
    if status is not None:
        _move(workplace, task, status, only_if)
    elif changes.get("skip_review") and workplace.source.show(task).status in AT_WORK:
        narrate(call, f"task {task} is under way: this run is reviewed, the next one is not")
    show_task(call, workplace, task)


def _retarget(workplace: "Workplace", task: str, base: str) -> None:
    """Move work that has a branch to another target; before that, a task follows its file."""
    row = load_world(workplace.db).tasks.get(task)
    if row is not None and (row.branch or row.is_over):
        target = base or workplace.target
        ask(workplace, Request(verb="retarget", args={"task": task, "target": target}))


def _read_draft(call: Call, file: str | None, flags: dict[str, Any]) -> TaskDraft | None:
    if file is None:
        return None
    if "-" in (file, flags["body"]) and file == flags["body"]:
        raise UsageError("stdin can be read only once", hint="give --from or --body a file or text")
    return read_draft(read_file(file, directory=call.directory))


def _from_draft(draft: TaskDraft | None) -> dict[str, Any]:
    """The fields in the block's head; an empty one clears the field."""
    if draft is None:
        return {}
    known = {one.name for one in fields(TaskChanges)} & draft.named
    empty: dict[str, Any] = {"issue": 0, "priority": None, "skip_review": None}
    found = {name: getattr(draft, name) for name in known}
    found = {name: empty.get(name, "") if v is None else v for name, v in found.items()}
    if draft.body:
        found["body"] = draft.body
    if block_number(str(found.get("parent") or "")) is not None:
        raise UsageError("a bare number is a block of the file", hint=f"write #{found['parent']}")
    return {name: value for name, value in found.items() if value is not None}


def _named(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags that were given."""
    if flags.pop("no_parent"):
        if flags["parent"]:
            raise UsageError("--parent and --no-parent exclude each other", hint="choose one")
        flags["parent"] = ""
    given = {name: value for name, value in flags.items() if value not in (None, ())}
    if "labels" in given:
        given["labels"] = tuple(label for label in given["labels"] if label)
    return given


def _changes(workplace: "Workplace", task: str, given: dict[str, Any]) -> dict[str, Any]:
    """The changes with every reference resolved; raises for an unknown one."""
    if "body" in given:
        given["body"] = text_or_stdin(given["body"])
    if given.get("parent"):
        given["parent"] = workplace.source.resolve(given["parent"])
        _refuse_own_ancestor(workplace, task, given["parent"])
    refuse_unknown_agent(workplace, given.get("agent"))
    if base := given.get("base"):
        workplace.refuse_missing_branch(base)
    return given


def _refuse_own_ancestor(workplace: "Workplace", task: str, parent: str) -> None:
    items = workplace.snapshot().by_id
    line = [task]
    above: str | None = parent
    while above is not None and above in items:
        line.append(above)
        if above == task:
            raise Conflict(
                f"parents would form a cycle: {' → '.join(line)}",
                hint="break it first",
                code="parent_cycle",
            )
        if line.count(above) > 1:
            return
        above = items[above].parent


def _refuse(
    workplace: "Workplace", item: TaskItem, status: str | None, only_if: tuple[str, ...]
) -> None:
    """Refuse before anything is changed; a recorded status counts even if it is not written yet."""
    if status is None and not only_if:
        return
    row = load_world(workplace.db).tasks.get(item.id)
    now = str(row.state if row is not None and row.state != row.written else item.status)
    if only_if and now not in only_if:
        raise Conflict(
            f"task {item.id} is {now}, not {' or '.join(only_if)}",
            hint=f"nothing was changed; `crew show {item.id}` shows it",
            code="other_status",
        )
    if status is None or status == now or (now, status) in MOVES:
        return
    allowed = [after for before, after in MOVES if before == now]
    way = f"; {WAYS[status]}" if status in WAYS else ""
    raise Conflict(
        f"task {item.id} is {now} and cannot be set to {status}",
        hint=f"you may set it to: {', '.join(allowed) or 'nothing, it is final'}{way}",
        code="status_not_settable",
    )


def _move(workplace: "Workplace", task: str, status: str, only_if: tuple[str, ...]) -> None:
    now = str(workplace.source.show(task).status)
    if now == status:
        return
    verb = MOVES.get((now, status), "retry" if status == "todo" else "close")
    args = {"task": task, "subject": task, "if_status": list(only_if)}
    ask(workplace, Request(verb=verb, args=args), settled=is_written(task))


def _set_dependencies(workplace: "Workplace", task: str, draft: TaskDraft) -> None:
    wanted = [workplace.source.resolve(one.removeprefix("#")) for one in draft.after]
    for dep in workplace.source.show(task).deps:
        if dep not in wanted:
            workplace.source.remove_dep(task, dep)
    for dep in wanted:
        add_dependency(workplace, task, dep)
