"""`crew checkpoints` and `crew restore`: list a task's checkpoints, write one to a folder."""

from pathlib import Path

import click

from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json, say, table
from crew.front.cli.params import task_argument
from crew.runner.upkeep.kept_work import kept_task, kept_views, remarks, restore_work

HEAD = ("N", "COMMIT", "TAKEN", "WHY")


@command("checkpoints", example="crew checkpoints 12\ncrew checkpoints 12 --json")
@task_argument()
@pass_call
def checkpoints(call: Call, task: str) -> None:
    """List the checkpoints of a task.

    stderr lists commits that were reset away, nested repositories, and files that were left out.
    """
    workplace = call.workplace()
    views = kept_views(workplace, kept_task(workplace, task))
    if call.json:
        print_json(views)
    elif views:
        table(
            HEAD, [(str(v["number"]), v["commit"][:12], v["at"], v["label"]) for v in views], call
        )
        for words in (words for view in views for words in remarks(workplace, view)):
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

    Without a number it writes the last checkpoint, to a new folder next to the worktrees. Nested
    repositories are restored with their commits. Nothing that exists is touched. Prints the folder.
    """
    workplace = call.workplace()
    into = call.directory / into if into else None
    task = kept_task(workplace, task)
    folder, view = restore_work(workplace, task, number=number, into=into)
    if call.json:
        print_json({"into": str(folder), **view})
    else:
        say(str(folder))
