"""`crew review`: a review of a task's last commit that a person asks for, at any time."""

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

from crew.domain.agents.agent_kinds import refuse_unusable
from crew.domain.kernel.errors import Conflict
from crew.domain.quests.brief import brief_of
from crew.domain.requests import Request, find_task
from crew.domain.rows.step import UNREPORTED
from crew.domain.runs.suspicions import MOST_HOSTS, SuspiciousAct
from crew.domain.runs.verdicts import Review, Verdict, no_verdict
from crew.domain.tasks.readiness import next_step
from crew.git.repository import commit_of
from crew.git.worktrees.worktrees import follow
from crew.runner.outside.outside import ReviewCall
from crew.runner.outside.review_runs import Reviews
from crew.runner.requests.ask_crew import ask
from crew.runner.sandbox.hosts_in_runner import act_of, how_to_allow
from crew.runner.sandbox.listed_hosts import hosts_served
from crew.store.fact_log import load_world
from crew.workplace import Workplace

if TYPE_CHECKING:
    from crew.system.host_proxy.proxy_server import Refused


def review_call(workplace: Workplace, task: str, reviewer: str) -> ReviewCall:
    """The review call for a task; raises without a branch, or if the reviewer cannot be used."""
    world = load_world(workplace.db)
    row, run = find_task(world, task), world.runs.get(world.tasks[task].run or "")
    if row.worktree and workplace.worktree_of(row).is_dir():
        follow(workplace.repo, workplace.worktree_of(row))
    commit = commit_of(workplace.repo, f"refs/heads/{row.branch}") if row.branch else None
    if run is None or commit is None:
        raise Conflict(
            f"task {task} has no branch now",
            hint=next_step(row, "makes one"),
            code="no_task_branch",
        )
    other = f"`crew review {task} --agent NAME` (`crew agents` lists them)"
    refuse_unusable(reviewer, workplace.rules, instead=other)
    brief = brief_of(world, run)
    return ReviewCall(run=run, task=row, commit=commit, reviewer=reviewer, brief=brief)


def review_now(workplace: Workplace, wanted: ReviewCall) -> Verdict:
    """Run the review; record its cost, and its verdict for exactly that commit."""
    refused: dict[Refused, None] = {}
    try:
        review = asyncio.run(_reviewed(workplace, wanted, refused))
    except KeyboardInterrupt:
        args = {"task": wanted.task.id, "reviewer": wanted.reviewer, "usage": asdict(UNREPORTED)}
        ask(workplace, Request(verb="reviewed", args=args))
        raise
    for one in refused:
        act = SuspiciousAct(
            act=act_of(one),
            role="reviewer",
            task=wanted.task.id,
            run=wanted.run.id,
            context=how_to_allow(one),
        )
        ask(workplace, Request(verb="suspect", args=asdict(act)))
    found, args = review.verdict, {"task": wanted.task.id, "reviewer": review.reviewer}
    usage = asdict(review.usage)
    if found is None:
        ask(workplace, Request(verb="reviewed", args={**args, "usage": usage}))
        raise no_verdict(review, wanted.task.id)
    verdict = {"commit": found.commit, "reviewer": found.reviewer, "passed": found.passed}
    ask(workplace, Request(verb="reviewed", args={**args, "verdict": verdict, "usage": usage}))
    return found


async def _reviewed(
    workplace: Workplace, wanted: ReviewCall, refused: "dict[Refused, None]"
) -> Review:
    """The review; without a runner, this process serves the listed hosts."""

    def keep(one: "Refused") -> None:
        if len(refused) < MOST_HOSTS:
            refused[one] = None

    async with hosts_served(workplace, keep):
        return await Reviews(workplace).run(wanted)
