"""`crew review`: has the last commit of a task reviewed now."""

from dataclasses import asdict

import click

from crew.domain.kernel.errors import CheckFailed
from crew.domain.runs.verdicts import Verdict
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.exit_codes import error_document
from crew.front.cli.output import narrate, print_json, safe, say
from crew.front.cli.params import task_argument
from crew.front.cli.tab_completion import complete_kinds
from crew.runner.by_hand.review_now import review_call, review_now


@command("review", example="crew review 12\ncrew review 12 --agent codex-reviewer")
@task_argument()
@click.option(
    "--agent", "kind", metavar="KIND", shell_complete=complete_kinds, help="Reviewer kind."
)
@pass_call
def review(call: Call, task: str, kind: str | None) -> int:
    """Review the last commit of a task now.

    The reviewer's notes become a comment. The verdict counts for exactly that commit.
    """
    workplace = call.workplace()
    task = workplace.source.resolve(task)
    agents = workplace.settings.agents
    reviewer = agents.named(kind or agents.reviewer_default).name
    wanted = review_call(workplace, task, reviewer)
    narrate(call, f"{reviewer} reviews {wanted.commit[:12]} of task {task}")
    found = review_now(workplace, wanted)
    return _told(call, task, found)


def _told(call: Call, task: str, found: Verdict) -> int:
    """Print the verdict, as one JSON document even if it is the error."""
    failed = CheckFailed(
        f"the review of task {task} did not pass",
        hint=f"answer every note and commit; `crew show {task}` has them too",
    )
    if call.json:
        error = {} if found.passed else error_document(failed)
        print_json({**error, "task": task, **asdict(found)})
        return 0 if found.passed else failed.exit_code
    say(safe(found.notes, call))
    if not found.passed:
        raise failed
    return 0
