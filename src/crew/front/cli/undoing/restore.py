"""`crew checkpoints` and `crew restore`: what was kept, and how to get it back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from crew.domain.kernel.errors import NotFound
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json, say, table
from crew.front.cli.params import task_argument
from crew.git.checkpoints.checkpoints import Checkpoint
from crew.git.checkpoints.checkpoints import checkpoints as all_checkpoints
from crew.git.checkpoints.checkpoints import restore as write_files
from crew.git.checkpoints.reflogs import way_back
from crew.git.repository import Repository
from crew.runner.views.row_views import moment

HEAD = ("N", "COMMIT", "TAKEN", "WHY")


def checkpoint_view(kept: Checkpoint) -> dict[str, Any]:
    return {
        "number": kept.number,
        "commit": kept.commit,
        "parent": kept.parent,
        "label": kept.label,
        "at": moment(kept.at),
        "reset_away": list(kept.notes.reset_away),
        "nested": [one.path for one in kept.notes.nested],
        "left_out": list(kept.notes.left_out),
    }


def remarks(repo: Repository, view: dict[str, Any]) -> Iterator[str]:
    """What a checkpoint holds beside files, and what it does not hold."""
    at = f"checkpoint {view['number']}"
    for commit in view["reset_away"]:
        yield f"{at} holds a commit that was left behind: {way_back(repo, commit)}"
    for path in view["nested"]:
        yield f"{at} holds the repository {path} with its commits"
    for words in view["left_out"]:
        yield f"{at} does not hold {words}"


@command("checkpoints", example="crew checkpoints 12\ncrew checkpoints 12 --json")
@task_argument()
@pass_call
def checkpoints(call: Call, task: str) -> None:
    """List the checkpoints of a task.

    stderr lists commits that were reset away, nested repositories, and files that were left out.
    """
    workplace = call.workplace()
    found = all_checkpoints(workplace.repo, _kept_task(workplace, task))
    views = [checkpoint_view(kept) for kept in found]
    if call.json:
        print_json(views)
    elif views:
        table(
            HEAD, [(str(v["number"]), v["commit"][:12], v["at"], v["label"]) for v in views], call
        )
        for words in (words for view in views for words in remarks(workplace.repo, view)):
            narrate(call, words)
    else:
        narrate(call, "no checkpoint yet: crew takes one after every step")


@command("restore", example="crew restore 12\ncrew restore 12 3 --into /tmp/look")
@task_argument()
@click.argument("number", required=False, type=click.IntRange(1))
@click.option(
    "--into", metavar="DIR", type=click.Path(path_type=Path), help="A new or empty folder."
)
@pass_call
def restore(call: Call, task: str, number: int | None, into: Path | None) -> None:
    """Write a checkpoint's files to a folder.

    Without a name it writes the last checkpoint, to a new folder next to the worktrees. Nested
    repositories are restored with their commits. Nothing that exists is touched. Prints the folder.
    """
    workplace = call.workplace()
    task = _kept_task(workplace, task)
    if number is None:
        kept = all_checkpoints(workplace.repo, task)
        number = kept[-1].number if kept else None
    folder = into or workplace.worktrees / f"restored-{task}-{number}"
    folder = folder if folder.is_absolute() else call.directory / folder
    done = write_files(workplace.repo, task, number, folder)
    if call.json:
        print_json({"into": str(folder), **checkpoint_view(done)})
    else:
        say(str(folder))


def _kept_task(workplace: Any, named: str) -> str:
    """A task that was removed still has its checkpoints."""
    from crew.domain.kernel.names import task_id  # noqa: PLC0415

    try:
        return str(workplace.source.resolve(named))
    except NotFound:
        if all_checkpoints(workplace.repo, task_id(named)):
            return task_id(named)
        raise
