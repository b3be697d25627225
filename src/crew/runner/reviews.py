"""Has a commit reviewed by an agent, in a worktree of its own that holds exactly that commit."""

import asyncio
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from crew.agents.adapter import Watch, adapter_for
from crew.agents.ownership import MARKER_VARIABLE
from crew.config.prompts import prompt
from crew.domain.errors import CrewError
from crew.domain.review import PASS, Verdict, verdict
from crew.domain.run import Run
from crew.domain.step import StepOrder
from crew.domain.task import Task
from crew.domain.task_item import TaskItem
from crew.git.worktrees import ensure_detached, remove_worktree
from crew.runner.calls import agent_settings, agent_spec, step_environment
from crew.runner.step_log import start_step
from crew.runner.workplace import Workplace
from crew.tasks.source import Lifecycle, NewComment

KIND = "report"
"""What such a comment is in seed 001's task store."""


@dataclass(frozen=True, slots=True)
class Reviews:
    workplace: Workplace

    async def run(self, run: Run, task: Task, *, commit: str, reviewer: str) -> Verdict:
        """The verdict, which is a comment of the task by the time it is returned."""
        item = await asyncio.to_thread(self.workplace.source.show, task.id)
        key = uuid.uuid4().hex[:8]
        path = self.workplace.worktrees / f".review-{task.id}-{key}"
        await asyncio.to_thread(ensure_detached, self.workplace.repo, path, commit)
        try:
            order = self._order(run, task, item, commit=commit, reviewer=reviewer, path=path)
            found = await self._ask(order, commit)
        finally:
            await asyncio.to_thread(remove_worktree, self.workplace.repo, path)
        await asyncio.to_thread(keep_verdict, self.workplace, task.id, found)
        return found

    async def _ask(self, order: StepOrder, commit: str) -> Verdict:
        settings = agent_settings(self.workplace, order.kind)
        spec = agent_spec(self.workplace, settings, settings.system_prompt or "")
        start_step(order.log, agent=order.agent, step=order.key.partition("/")[2])
        watch = Watch(started=lambda _pid: None, doing=lambda _words: None)
        outcome = await adapter_for(spec).run_step(order, watch)
        if outcome.error is not None:
            raise CrewError(
                f"{order.kind} could not review it: {outcome.error.message}",
                hint=f"look at {order.log}; it is tried again",
            )
        return verdict(outcome.text, commit=commit, reviewer=order.kind)

    def _order(
        self, run: Run, task: Task, item: TaskItem, *, commit: str, reviewer: str, path: Path
    ) -> StepOrder:
        workplace = self.workplace
        settings = agent_settings(workplace, reviewer)
        key = f"{workplace.repo_id}/{path.name.removeprefix('.')}"
        extra = settings.prompt or workplace.settings.agents.reviewer_prompt
        words = prompt(
            "reviewer",
            task=task.id,
            title=item.title,
            body=item.body,
            commit=commit,
            target=task.target,
        )
        return StepOrder(
            key=key,
            agent=reviewer,
            kind=reviewer,
            worktree=path,
            prompt=f"{words}\n{extra}\n" if extra else words,
            session=str(uuid.uuid5(uuid.UUID(workplace.repo_id), key)),
            resume=False,
            log=workplace.logs / f"review-{task.id}.log",
            done_word=PASS,
            timeout_s=workplace.settings.run.step_timeout_s,
            idle_timeout_s=workplace.settings.run.idle_timeout_s,
            env={
                **step_environment(workplace, run, task, role="reviewer"),
                MARKER_VARIABLE: f"review/{key}",
            },
        )


def keep_verdict(workplace: Workplace, task: str, found: Verdict) -> None:
    """A review counts once it is recorded: the comment first, then the number of them."""
    source, now = workplace.source, time.time()
    word = "passed" if found.passed else "did not pass"
    text = f"Review of {found.commit[:12]}: {word}\n\n{found.notes}"
    source.comment(task, NewComment(author=found.reviewer, text=text, at=now, kind=KIND))
    item = source.show(task)
    lifecycle = Lifecycle(review_count=item.review_count + 1)
    source.set_status(task, item.status, at=now, lifecycle=lifecycle)
