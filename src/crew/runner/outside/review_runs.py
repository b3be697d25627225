"""Has a commit reviewed by an agent, in a worktree of its own that holds exactly that commit."""

import asyncio
import logging
import os
import shlex
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from crew.agents.adapter import StepOrder, Watch, adapter_for
from crew.agents.environment import shim_folder
from crew.agents.terminal.terminal_script import put_file
from crew.config.prompts import prompt
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.quotation import headline, quoted
from crew.domain.rows.task_item import TaskItem
from crew.domain.runs.verdicts import PASS, Review, Verdict, verdict
from crew.git.worktrees.worktrees import ensure_detached, remove_worktree
from crew.runner.outside.outside import ReviewCall
from crew.runner.prompts.brief_text import read_brief
from crew.runner.prompts.mcp_connection import connection
from crew.runner.prompts.review_diff import diff_words
from crew.runner.prompts.step_orders import agent_settings, agent_spec, step_environment
from crew.runner.prompts.step_prompt import message_words, own_words
from crew.runner.requests.tokens import Tokens
from crew.runner.sandbox.confinement import with_rights
from crew.runner.views.code_changes import code_changes, warning_words
from crew.runner.views.step_log import start_step
from crew.system.processes.ownership import MARKER_VARIABLE, find_process, kill_marked
from crew.tasks.task_source import Lifecycle, NewComment
from crew.workplace import Workplace

log = logging.getLogger(__name__)

KIND = "report"
"""The kind of a review's comment in the task files."""

_FOLDER = ".review-"
_KEY = "review-"


@dataclass(frozen=True, slots=True)
class Reviews:
    workplace: Workplace

    async def run(self, call: ReviewCall) -> Review:
        """Run the review; its verdict is stored as a comment before it is returned."""
        task = call.task.id
        words = await asyncio.to_thread(self._words, call)
        name = _new_name(task)
        path = self.workplace.worktrees / f"{_FOLDER}{name}"
        kind = self.workplace.worktree_kind
        await asyncio.to_thread(ensure_detached, self.workplace.repo, path, call.commit, kind=kind)
        try:
            order = self._order(call, words, path)
            await asyncio.to_thread(self._keep_files, task, order)
            found = await self._ask(order, call)
        finally:
            await asyncio.to_thread(remove_worktree, self.workplace.repo, path)
        if found.verdict is not None:
            await asyncio.to_thread(keep_verdict, self.workplace, task, found.verdict, name=name)
        return found

    def _keep_files(self, task: str, order: StepOrder) -> None:
        """Keep the prompt, and a script that repeats the same review."""
        scripts = self.workplace.folder / "scripts"
        crew = str(shim_folder(order) / "crew")
        command = (crew, "-C", str(self.workplace.root), "review", task, "--agent", order.kind)
        put_file(scripts / f"review-{task}-prompt.txt", order.prompt, mode=0o600)
        text = f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n'
        put_file(scripts / f"review-{task}.sh", text, mode=0o700)

    def tidy(self) -> None:
        """End reviews whose crew process was killed; those of a live process continue."""
        for name in self._left():
            try:
                kill_marked(self._marker(name))
                remove_worktree(self.workplace.repo, self.workplace.worktrees / f"{_FOLDER}{name}")
            except (CrewError, OSError) as error:
                log.warning("a review's worktree stays: %s", error)

    def killed(self) -> tuple[str, ...]:
        """The tasks of reviews that `tidy` would end."""
        return tuple(name.rsplit("-", 3)[0] for name in self._left())

    def _left(self) -> list[str]:
        found = self.workplace.worktrees.glob(f"{_FOLDER}*")
        names = [path.name.removeprefix(_FOLDER) for path in found]
        return [name for name in names if not _is_under_way(name)]

    def _marker(self, name: str) -> str:
        """A marker of its own, not the runner's: `crew review` survives the end of a runner."""
        return f"review/{self.workplace.repo_id}/{name}"

    async def _ask(self, order: StepOrder, call: ReviewCall) -> Review:
        settings = agent_settings(self.workplace, order.kind)
        spec = agent_spec(self.workplace, settings, settings.system_prompt or "")
        order = with_rights(self.workplace, order, settings)
        start_step(order.log, agent=order.agent, step=order.key.partition("/")[2])
        watch = Watch(started=lambda _pid: None, doing=lambda _words: None, heard=call.heard)
        outcome = await adapter_for(spec).run_step(order, watch, call.controls)
        found = None
        if outcome.error is None:
            found = verdict(outcome.text, commit=call.commit, reviewer=order.kind)
        usage, error = outcome.usage, outcome.error
        return Review(reviewer=order.kind, verdict=found, error=error, usage=usage)

    def _words(self, call: ReviewCall) -> str:
        """The review's prompt: the task, its quest's brief, and messages to the reviewers."""
        workplace, task = self.workplace, call.task
        item = workplace.source.show(task.id)
        words = prompt(
            "reviewer",
            task=task.id,
            title=headline(item.title),
            body=quoted(item.body),
            brief=read_brief(workplace.source, call.brief),
            commit=call.commit,
            target=task.target,
            unfinished=prompt("review_unfinished") if call.run.out_of_steps else "",
        )
        settings = agent_settings(workplace, call.reviewer)
        extra = own_words(workplace.settings.agents.reviewer_prompt, settings.prompt)
        risky = warning_words(code_changes(workplace, task, call.commit))
        change = diff_words(workplace, task, call.commit)
        parts = (words, change, risky, extra, message_words(call.messages))
        return "\n".join(part for part in parts if part)

    def _order(self, call: ReviewCall, words: str, path: Path) -> StepOrder:
        workplace, run, task = self.workplace, call.run, call.task
        name = path.name.removeprefix(_FOLDER)
        key = f"{workplace.repo_id}/review/{name}"
        return StepOrder(
            key=key,
            agent=call.reviewer,
            kind=call.reviewer,
            worktree=path,
            prompt=words,
            session=str(uuid.uuid5(uuid.UUID(workplace.repo_id), key)),
            resume=False,
            log=workplace.logs / f"review-{task.id}.log",
            done_word=PASS,
            timeout_s=workplace.settings.run.step_timeout_s,
            idle_timeout_s=workplace.settings.run.idle_timeout_s,
            env={
                **step_environment(workplace, run, task, role="reviewer"),
                **connection(workplace, Tokens(workplace.folder).review_token(run, name)),
                MARKER_VARIABLE: self._marker(name),
            },
        )


def is_open_review(workplace: Workplace, name: str) -> bool:
    """Whether this review is under way: its worktree is there, and so is the process that asked."""
    return (workplace.worktrees / f"{_FOLDER}{name}").exists() and _is_under_way(name)


def keep_verdict(workplace: Workplace, task: str, found: Verdict, *, name: str) -> None:
    """Record a review: the comment first, then the number of reviews.

    The number is counted from the comments, so that reviews may end in parallel and a lost count is
    corrected.
    """
    source, now = workplace.source, time.time()
    word = "passed" if found.passed else "did not pass"
    text = f"Review of {found.commit[:12]}: {word}\n\n{found.notes}"
    comment = NewComment(author=found.reviewer, text=text, at=now, kind=KIND, key=f"{_KEY}{name}")
    source.comment(task, comment)
    while (item := source.show(task)).review_count < (count := _reviews_of(item)):
        lifecycle = Lifecycle(review_count=count)
        source.set_status(task, item.status, at=now, lifecycle=lifecycle)


def _reviews_of(item: TaskItem) -> int:
    return sum(comment.key.startswith(_KEY) for comment in item.comments)


def _new_name(task: str) -> str:
    """A name with the pid and its start time, since a pid alone may be used again."""
    me = find_process(os.getpid())
    return f"{task}-{os.getpid()}-{me.started if me else 0}-{uuid.uuid4().hex[:8]}"


def _is_under_way(name: str) -> bool:
    """Whether the process that asked for this review lives; True where that cannot be seen."""
    _task, pid, started, _key = name.rsplit("-", 3)
    found = find_process(int(pid))
    return started == "0" or (found is not None and str(found.started) == started)
