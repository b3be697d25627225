"""The text of a task: its fields, its part in a quest, reviews, description and comments."""

import textwrap
import time
from collections.abc import Iterator
from typing import ClassVar

from crew.domain.kernel.text import plain
from crew.domain.rows.task import Task
from crew.domain.rows.task_item import TaskItem, blockers
from crew.front.tui.board.task_cells import status_words
from crew.front.tui.live.picture import News
from crew.front.tui.panes.pane import Pane, Unread
from crew.front.tui.panes.task_parts import quest_fields, quest_items, review_fields
from crew.front.tui.widgets.line_list import ShownLine, heading, text_line
from crew.front.tui.widgets.safe_text import safe
from crew.runner.views.code_changes import code_changes
from crew.runner.views.row_views import moment

LONGEST_BODY = 100_000


class DescriptionPane(Pane):
    """Everything that people wrote about the task."""

    title: ClassVar[str] = "Description"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._runs_code: dict[tuple[str, str], dict[str, str]] = {}
        self._is_reading = False

    def fill(self) -> None:
        item = self.picture.items.get(self.task_id)
        self.show(list(self._lines(item)) if item else [text_line("no task", "muted")])

    def take(self, news: News) -> None:
        if news.tasks_changed or news.about("task", "run", "question", "walk", "quest"):
            self.fill()

    def on_resize(self) -> None:
        if self.task_id:
            self.fill()

    # Files that run code elsewhere: known once git was asked

    def tick(self) -> None:
        row = self.picture.world.tasks.get(self.task_id)
        if self._is_reading or not self.is_settled or row is None or not _work_of(row):
            return
        if (row.id, _work_of(row)) not in self._runs_code:
            self._is_reading = True
            self.run_worker(self._read_code(row), exit_on_error=False)

    async def _read_code(self, row: Task) -> None:
        try:
            found = await self.read(lambda workplace: code_changes(workplace, row))
        finally:
            self._is_reading = False
        self._runs_code[row.id, _work_of(row)] = {} if isinstance(found, Unread) else found
        if row.id == self.task_id and found:
            self.fill()

    # Lines

    def _lines(self, item: TaskItem) -> Iterator[ShownLine]:
        yield text_line(f"{safe(item.id)}  {safe(item.title)}", "bold")
        for name, value in self._fields(item):
            if value:
                yield ShownLine(spans=((f"{name:>10}  ", "muted"), (safe(value), "")))
        if item.corrupt:
            yield text_line(f"unreadable: {safe(item.corrupt)}", "bad")
        yield from self._code_lines(item.id)
        yield text_line("")
        yield from self._wrapped(item.body or "no description")
        yield from quest_items(self.picture.world, item.id)
        for comment in item.comments:
            yield text_line("")
            yield heading(
                f"{safe(comment.author)}  {moment(comment.at) or ''}  {safe(comment.kind)}"
            )
            yield from self._wrapped(comment.text)

    def _fields(self, item: TaskItem) -> Iterator[tuple[str, str]]:
        row = self.picture.world.tasks.get(item.id)
        run = self.picture.world.runs.get((row.run if row else None) or "")
        yield "status", status_words(self.picture, item.id, now=time.time())
        yield "waits for", ", ".join(blockers(item, self.picture.items))
        yield "agent", (run.agent_kind if run else "") or item.agent or ""
        yield "labels", ", ".join(item.labels)
        yield "parent", item.parent or ""
        yield "branch", row.branch if row else ""
        yield "target", row.target if row else ""
        if row is not None:
            yield from quest_fields(self.picture.world, row)
            yield "gate", row.gate
            yield "landed", row.landed_commit[:12]
        if run is not None:
            yield "run", f"{run.state}, round {run.round} of {run.max_rounds}, {run.steps} steps"
            yield from review_fields(run)
            yield "error", run.error
        for asked in self.picture.world.questions.values():
            if asked.is_open and asked.task == item.id:
                yield "asks", f"{asked.question} (i answers {asked.id})"

    def _code_lines(self, task: str) -> Iterator[ShownLine]:
        row = self.picture.world.tasks.get(task)
        found = self._runs_code.get((task, _work_of(row)), {}) if row else {}
        for path, reason in found.items():
            words = f"{safe(path)} ({safe(reason)})"
            yield ShownLine(spans=((" runs code  ", "warn"), (words, "warn")))

    def _wrapped(self, text: str) -> Iterator[ShownLine]:
        for line in plain(text[:LONGEST_BODY]).expandtabs(4).splitlines():
            for part in textwrap.wrap(line, self.line_width, drop_whitespace=False) or [""]:
                yield text_line(part)


def _work_of(row: Task) -> str:
    """What the task has made so far; empty if there is nothing to look at."""
    return row.landed_commit or row.head
