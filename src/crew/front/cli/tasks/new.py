"""`crew new`: creates one task from flags, or many from a file."""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from crew.domain.kernel.errors import UsageError
from crew.domain.rows.task_item import DEFAULT_PRIORITY
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import print_json, say
from crew.front.cli.params import base_option, one_agent, text_or_stdin, worker_option
from crew.front.cli.tab_completion import complete_kinds, complete_tasks
from crew.front.cli.tasks.drafts import (
    TaskDraft,
    block_number,
    blocks_waited_for,
    making_order,
    read_drafts,
    read_file,
)
from crew.runner.new_tasks import refuse_unknown_agent
from crew.tasks.task_source import BatchSource, NewTask, TaskChanges, TaskSource

if TYPE_CHECKING:
    from pathlib import Path

    from crew.workplace import Workplace

EXAMPLE = """crew new --title "Fix the login" --body - < report.txt
crew new --title "Document it" --after 12 --label docs --priority 1
crew new --issue 123
crew new --from tasks.md"""


@command("new", example=EXAMPLE)
@click.option("-t", "--title", help="Title of the task.")
@click.option("-b", "--body", help="Description; - reads stdin.")
@click.option(
    "--after",
    multiple=True,
    metavar="ID",
    shell_complete=complete_tasks,
    help="Wait for this task (repeatable).",
)
@click.option("--parent", metavar="ID", shell_complete=complete_tasks, help="The parent task.")
@click.option("--priority", type=click.IntRange(0, 4), help="0 (most urgent) to 4.  [default: 2]")
@click.option("--label", "labels", multiple=True, help="A label (repeatable).")
@click.option(
    "--issue",
    type=click.IntRange(1),
    metavar="N",
    help="GitHub issue; without --title, `gh` supplies title and text.",
)
@base_option
@click.option(
    "--agent", metavar="A", shell_complete=complete_kinds, help="Agent kind that gets the task."
)
@worker_option("--agent")
@click.option("--skip-review", is_flag=True, default=None, help="Skip the review.")
@click.option("--from", "file", metavar="FILE", help="Create every task of a file; - reads stdin.")
@pass_call
def new(
    call: Call,
    /,
    *,
    file: str | None,
    title: str | None,
    body: str | None,
    agent: str | None,
    worker: str | None,
    **flags: object,
) -> None:
    """Create a task, or many from a file.

    Prints the id, or one id per line. A file holds blocks like `---`, `title: …`, `labels: …`,
    `parent: 1`, `after: 1, #12`, `---`, text; a bare number names a block of the file.
    """
    workplace = call.workplace()
    flags["agent"] = one_agent(agent, worker)
    asks_gh = file is None and title is None and flags["issue"] is not None
    if file is not None:
        _refuse_beside_file({"title": title, "body": body, **flags})
        drafts = read_drafts(read_file(file, directory=call.directory))
    elif title is None and not asks_gh:
        raise UsageError(
            "a task needs a title", hint='crew new --title "…", or --issue N, or --from FILE'
        )
    else:
        drafts = [_from_flags(title or "", body, flags)]
    if asks_gh:
        from crew.front.cli.tasks.github_issue import with_issue  # noqa: PLC0415 - starts a process

        drafts = [with_issue(drafts[0], workplace.root)]
    _tell(
        call, workplace, add_drafts(workplace, drafts, place=call.directory), many=file is not None
    )


def _refuse_beside_file(flags: dict[str, object]) -> None:
    """Refuse flags that describe a task beside `--from`, which would not take effect."""
    named = [name for name, value in flags.items() if value not in (None, ())]
    if named:
        option = {"labels": "--label"}.get(named[0], f"--{named[0].replace('_', '-')}")
        raise UsageError(
            f"--from creates the tasks as its file describes them, so it takes no {option}",
            hint="write it into the blocks of the file, like `title: …` or `priority: 0`",
        )


def _from_flags(title: str, body: str | None, flags: dict[str, object]) -> TaskDraft:
    """A draft from the flags; ids on the command line always name existing tasks."""
    parent = flags.pop("parent")
    after = flags.pop("after")
    assert isinstance(after, tuple)
    return TaskDraft(
        title=title,
        body=text_or_stdin(body) or "",
        parent=f"#{str(parent).removeprefix('#')}" if parent else None,
        after=tuple(f"#{task.removeprefix('#')}" for task in after),
        **flags,  # type: ignore[arg-type]
    )


def add_drafts(workplace: "Workplace", drafts: list[TaskDraft], *, place: "Path") -> list[str]:
    """Check all drafts, then create the tasks; returns the ids in the file's order.

    `place` is the folder in which the command was started.
    """
    resolve = functools.cache(functools.partial(_reference, workplace))
    base_of = functools.cache(functools.partial(workplace.base_of_new, place=place))
    check = functools.cache(functools.partial(refuse_unknown_agent, workplace))
    ready = []
    for draft in drafts:
        check(draft.agent)
        ready.append(_resolved(replace(draft, base=base_of(draft.base)), resolve))
    ids = _add_all(workplace.source, ready)
    from crew.runner.requests.ask_crew import wake  # noqa: PLC0415 - checked first, then paid for

    wake(workplace)
    return [ids[block] for block in sorted(ids)]


def _add_all(source: TaskSource, drafts: list[TaskDraft]) -> dict[int, str]:
    """Create each task after those it waits for: a runner may take it at once."""
    order = making_order({block: blocks_waited_for(d) for block, d in enumerate(drafts, 1)})

    def make(made: Sequence[str]) -> list[NewTask]:
        ids = dict(zip(order, made, strict=True))
        return [_new_task(drafts[block - 1], ids, parents=ids) for block in order]

    if len(order) > 1 and isinstance(source, BatchSource):
        return dict(zip(order, source.add_all(len(order), make, at=time.time()), strict=True))
    ids: dict[int, str] = {}
    for block in order:
        ids[block] = source.add(_new_task(drafts[block - 1], ids, parents={}), at=time.time())
    for block, draft in enumerate(drafts, 1):
        parent = block_number(draft.parent or "")
        if parent is not None:
            source.edit(ids[block], TaskChanges(parent=ids[parent]))
    return ids


def _resolved(draft: TaskDraft, resolve: Callable[[str], str]) -> TaskDraft:
    return replace(
        draft,
        parent=resolve(draft.parent) if draft.parent else None,
        after=tuple(map(resolve, draft.after)),
    )


def _reference(workplace: "Workplace", text: str) -> str:
    """A block number unchanged; a task as `#` and its full id."""
    return (
        text
        if block_number(text) is not None
        else f"#{workplace.source.resolve(text.removeprefix('#'))}"
    )


def _new_task(draft: TaskDraft, ids: dict[int, str], *, parents: dict[int, str]) -> NewTask:
    """The task to create; a parent that is a block without an id yet is left out."""
    block = block_number(draft.parent or "")
    parent = parents.get(block) if block is not None else draft.parent
    return NewTask(
        title=draft.title,
        body=draft.body,
        labels=draft.labels,
        parent=parent.removeprefix("#") if parent else None,
        deps=tuple(_id(reference, ids) for reference in draft.after),
        priority=DEFAULT_PRIORITY if draft.priority is None else draft.priority,
        agent=draft.agent,
        base=draft.base,
        issue=draft.issue,
        skip_review=draft.skip_review,
    )


def _id(reference: str, ids: dict[int, str]) -> str:
    block = block_number(reference)
    return reference.removeprefix("#") if block is None else ids[block]


def _tell(call: Call, workplace: "Workplace", ids: list[str], *, many: bool) -> None:
    if not call.json:
        for task in ids:
            say(task)
        return
    from crew.runner.views.row_views import task_view  # noqa: PLC0415
    from crew.store.fact_log import load_world  # noqa: PLC0415

    world = load_world(workplace.db)
    made = [task_view(workplace.source.show(task), world) for task in ids]
    print_json(made if many else made[0])
