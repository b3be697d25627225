"""`crew review`: have the last commit of a task reviewed now."""

import asyncio
from dataclasses import asdict

import click

from crew.domain.agents.agent_kinds import refuse_unusable
from crew.domain.kernel.errors import CheckFailed, Conflict
from crew.domain.quests.brief import brief_of
from crew.domain.requests import Request, find_task
from crew.domain.runs.verdicts import Verdict
from crew.domain.tasks.readiness import next_step
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.exit_codes import error_document
from crew.front.cli.output import narrate, print_json, safe, say
from crew.front.cli.params import task_argument
from crew.front.cli.tab_completion import complete_kinds
from crew.git.repository import commit_of
from crew.runner.outside.outside import ReviewCall
from crew.runner.outside.review_runs import Reviews
from crew.runner.requests.ask_crew import ask
from crew.store.fact_log import load_world


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
    world = load_world(workplace.db)
    row, run = find_task(world, task), world.runs.get(world.tasks[task].run or "")
    commit = commit_of(workplace.repo, f"refs/heads/{row.branch}") if row.branch else None
    if run is None or commit is None:
        raise Conflict(f"task {task} has no branch now", hint=next_step(row, "makes one"))
    other = f"`crew review {task} --agent NAME` (`crew agents` lists them)"
    refuse_unusable(reviewer, workplace.rules, instead=other)
    narrate(call, f"{reviewer} reviews {commit[:12]} of task {task}")
    brief = brief_of(world, run)
    wanted = ReviewCall(run=run, task=row, commit=commit, reviewer=reviewer, brief=brief)
    found = asyncio.run(Reviews(workplace).run(wanted))
    verdict = {"commit": found.commit, "reviewer": found.reviewer, "passed": found.passed}
    ask(workplace, Request(verb="reviewed", args={"task": task, "verdict": verdict}))
    return _told(call, task, found)


def _told(call: Call, task: str, found: Verdict) -> int:
    """One document also where the verdict is the error."""
    failed = CheckFailed(
        f"the review of task {task} did not pass",
        hint=f"answer every note and commit; `crew show {task}` has them too",
    )
    if call.json:
        error = {} if found.passed else error_document(failed.code, failed.message, failed.hint)
        print_json({**error, "task": task, **asdict(found)})
        return 0 if found.passed else failed.exit_code
    say(safe(found.notes, call))
    if not found.passed:
        raise failed
    return 0
