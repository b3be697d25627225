"""The text of a task: its fields, description and comments."""

import textwrap
import time
from collections.abc import Iterator
from typing import ClassVar

from crew.domain.kernel.text import plain
from crew.domain.rows.task_item import TaskItem, blockers
from crew.front.tui.board.task_cells import status_words
from crew.front.tui.live.picture import News
from crew.front.tui.panes.pane import Pane
from crew.front.tui.widgets.line_list import ShownLine, heading, text_line
from crew.front.tui.widgets.paint import safe
from crew.runner.views.row_views import moment

LONGEST_BODY = 100_000


class DescriptionPane(Pane):
    """Everything that people wrote about the task."""

    title: ClassVar[str] = "Description"

    def fill(self) -> None:
        item = self.picture.items.get(self.task_id)
        self.show(list(self._lines(item)) if item else [text_line("no task", "muted")])

    def take(self, news: News) -> None:
        if news.tasks_changed or news.about("task", "run", "question"):
            self.fill()

    def on_resize(self) -> None:
        super().on_resize()
        if self.task_id:
            self.fill()

    def _lines(self, item: TaskItem) -> Iterator[ShownLine]:
        yield text_line(f"{safe(item.id)}  {safe(item.title)}", "bold")
        for name, value in self._fields(item):
            if value:
                yield ShownLine(spans=((f"{name:>10}  ", "muted"), (safe(value), "")))
        if item.corrupt:
            yield text_line(f"unreadable: {safe(item.corrupt)}", "bad")
        yield text_line("")
        yield from self._wrapped(item.body or "no description")
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
        if run is not None:
            yield "run", f"{run.state}, round {run.round} of {run.max_rounds}, {run.steps} steps"
            yield "error", run.error

    def _wrapped(self, text: str) -> Iterator[ShownLine]:
        for line in plain(text[:LONGEST_BODY]).expandtabs(4).splitlines():
            for part in textwrap.wrap(line, self.line_width, drop_whitespace=False) or [""]:
                yield text_line(part)
