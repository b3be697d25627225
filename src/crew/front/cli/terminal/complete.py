"""`crew complete`: checks finished work, and marks the task done if it passes."""

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crew.domain.kernel.errors import CheckFailed, CrewError, UsageError
from crew.domain.requests import Request
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.task import Task
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.echo import show_reply
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import task_argument, text_or_stdin
from crew.front.cli.setup.gate_notice import check_gate
from crew.front.cli.watching.ps import waits_for_merge
from crew.runner.requests.ask_crew import CHECKING, ask
from crew.runner.requests.ask_with_token import ask_own
from crew.runner.requests.settled import is_written
from crew.runner.views.row_views import task_view
from crew.store.fact_log import load_world
from crew.store.runner_lock import find_runner
from crew.tasks.task_source import NewComment

if TYPE_CHECKING:
    from crew.workplace import Workplace


PATIENCE_S = 24 * 3600.0
"""Gates and reviews have limits of their own."""


_PUSH = (
    "push it from your own clone, and complete again: `git -C SUBMODULE fetch "
    "{worktree}/SUBMODULE COMMIT && git -C SUBMODULE push origin COMMIT:refs/heads/{branch}`"
)

WHAT_TO_DO = {
    Ask.REFUSED: (
        "git refuses its commits",
        "make the commits again without it: `crew exec {task} -- git reset --soft {target}`",
    ),
    Ask.OFF_HEAD: (
        "the branch {branch} has commits that are not checked out",
        "take them in with `crew exec {task} -- git merge {branch}`, and complete again",
    ),
    Ask.NESTED: (
        "a repository of its own is in the worktree, and a commit would hold only a link to it",
        "type one of the commands above for each, commit, and run `crew complete` again",
    ),
    Ask.UNPUSHED: (
        "a submodule is at a commit that exists only in the worktree",
        _PUSH,
    ),
    Ask.UNCOMMITTED: ("there is uncommitted work", "commit it, then run `crew complete` again"),
    Ask.NOTHING_COMMITTED: ("nothing is committed on the branch", "commit your work"),
    Ask.RED_GATE: ("the gate is red", "fix it, commit, and run `crew complete` again"),
    Ask.CONFLICT: (
        "it conflicts with what landed meanwhile",
        "merge the base branch, resolve the conflicts, commit, and run `crew complete` again",
    ),
    Ask.LOST_SIDE: (
        "the merge drops a part of one side",
        "bring it back, commit, and complete again; `crew merge {task} --accept` if it is right",
    ),
    Ask.REVIEW: ("the review did not pass", "answer every note, commit, and complete again"),
}


@command(
    "complete",
    example="crew complete\ncrew complete 12 -m 'all tests pass'\ncrew complete 12 --merge",
)
@task_argument(required=False)
@click.option("-m", "--message", help="Comment on the work; - reads stdin.")
@click.option(
    "--merge/--no-merge",
    default=None,
    help="Also add it to the merge queue.  [default: [complete] merge]",
)
@pass_call
def complete(call: Call, task: str | None, message: str | None, *, merge: bool | None) -> None:
    """Check finished work and mark the task done.

    The worktree must be clean, and the gate, a trial merge and the reviews must pass. A done task
    waits for `crew merge`; with --merge it joins the merge queue at once. A failed check is
    printed, and the task stays in progress. Inside a task's worktree the id may be omitted.
    """
    if call.is_shut_in():
        summary = text_or_stdin(message) or "the work is finished"
        show_reply(call, ask_own("signal", {"signal": "complete", "summary": summary}))
        return
    workplace = call.workplace()
    task = workplace.source.resolve(task or task_here(call, workplace))
    row = load_world(workplace.db).tasks.get(task)
    check_gate(workplace, workplace.worktree_of(row) if row else workplace.root)
    narrate(call, f"checking task {task}: clean tree, gate, conflicts, review")
    request = Request(verb="complete", args={"task": task, "merge": merge})
    ask(
        workplace,
        request,
        settled=lambda world: _is_checked(world, task),
        only=CHECKING,
        timeout_s=PATIENCE_S,
    )
    world = load_world(workplace.db)
    run = world.runs[str(world.tasks[task].run)]
    _check(run, world.tasks[task], workplace.worktree_of(world.tasks[task]))
    if message:
        _comment(workplace, task, message)
    if call.json:
        print_json(task_view(workplace.source.show(task), world))
    else:
        narrate(call, f"task {task} is {_what_next(workplace, world.tasks[task])}")


def _what_next(workplace: "Workplace", task: Task) -> str:
    if task.awaits_merge:
        return waits_for_merge(task.id)
    if find_runner(workplace.lock_file) is not None:
        return "done and in the merge queue"
    way = f"`crew run` merges it, and so does `crew merge {task.id}`"
    return f"done and in the merge queue; no runner is up: {way}"


def task_here(call: Call, workplace: "Workplace") -> str:
    """The task of the current worktree, or of the agent's process that calls this."""
    if named := os.environ.get("CREW_TASK_ID"):
        return named
    here = call.directory.resolve()
    for task in load_world(workplace.db).tasks.values():
        if task.worktree and here.is_relative_to(workplace.worktree_of(task).resolve()):
            return task.id
    raise UsageError(
        "which task?", hint="name the task, or run it inside its worktree: crew complete 12"
    )


def _is_checked(world: World, task: str) -> bool:
    run = world.runs.get(world.tasks[task].run or "")
    return (run is None or run.state != RunState.REVIEWING) and is_written(task)(world)


def _check(run: Run, task: Task, worktree: Path) -> None:
    if run.state == RunState.COMPLETE:
        return
    if run.error:
        raise CrewError(
            f"task {task.id} could not be checked: {run.error}",
            hint="fix that first",
            code="not_checked",
        )
    why, remedy = WHAT_TO_DO.get(Ask(run.ask), ("it is not finished", "look at `crew show`"))
    names = {
        "task": task.id,
        "branch": task.branch,
        "target": task.target,
        "worktree": shlex.quote(str(worktree)),
    }
    found = f"task {task.id} is not done: {why.format(**names)}\n{run.notes}"
    raise CheckFailed(found.rstrip(), hint=remedy.format(**names))


def _comment(workplace: "Workplace", task: str, message: str) -> None:
    words = text_or_stdin(message) or ""
    author = os.environ.get("CREW_AGENT") or "me"
    comment = NewComment(author=author, text=words, at=time.time(), kind="report")
    workplace.source.comment(task, comment)
