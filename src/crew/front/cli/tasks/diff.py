"""`crew diff`: shows what a task has changed, with the configured command."""

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crew.domain.kernel.templates import DIFF_NAMES, Value, check, shell_command
from crew.domain.kernel.text import LINE_LIMIT, printable
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import print_json
from crew.front.cli.params import task_argument
from crew.runner.by_hand.task_diff import ShownDiff, diff_of, files_of, run_diff

if TYPE_CHECKING:
    from crew.workplace import Workplace

CHUNK = 65_536


@command("diff", example="crew diff 12\ncrew diff 12 -- --stat\ncrew diff 12 --json")
@task_argument()
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGS]...")
@pass_call
def diff(call: Call, task: str, args: tuple[str, ...]) -> int:
    """Show what a task has changed.

    Runs the command of `[diff] command` in the task's worktree, and exits
    with its exit code. Without a worktree it runs on the task's branch, and for a merged task on
    its merge commit.
    """
    workplace = call.workplace()
    template = workplace.settings.diff.command
    check(template, names=DIFF_NAMES)
    change = diff_of(workplace, workplace.source.resolve(task))
    with files_of(workplace, change) as folder:
        argv = shell_command(template, _values(workplace, change, folder, args))
        code, output = run_diff(workplace, argv, folder, keep_output=call.json)
    if call.json:
        _tell(change, code, output)
    return code


@command("_printable", example="")
def make_printable() -> None:
    """Copy stdin to stdout without control characters; only the pager of `crew diff` calls this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the pager
    rest = b""
    while chunk := os.read(sys.stdin.fileno(), CHUNK):
        lines, newline, rest = (rest + chunk).rpartition(b"\n")
        if len(rest) > LINE_LIMIT:
            lines, newline, rest = lines + newline + rest, b"", b""
        sys.stdout.write(printable(lines + newline))
        sys.stdout.flush()
    sys.stdout.write(printable(rest))


def _values(
    workplace: "Workplace", change: ShownDiff, folder: Path, args: tuple[str, ...]
) -> dict[str, Value]:
    return {
        "BaseBranch": change.base,
        "Args": args,
        "TaskID": change.task,
        "Branch": change.branch,
        "Worktree": str(folder),
        "RepoRoot": str(workplace.root),
        "GitDir": str(workplace.repo.common_dir),
    }


def _tell(change: ShownDiff, code: int, output: bytes) -> None:
    print_json(
        {
            "id": change.task,
            "branch": change.branch,
            "base": change.base,
            "exit_code": code,
            "diff": output.decode(errors="replace"),
        }
    )
