"""The timeline of a task: rounds, steps, gates, reviews, questions and messages, newest last."""

import time
from collections.abc import Iterator
from typing import ClassVar

from crew.domain.kernel.fact import Fact
from crew.domain.world import World
from crew.front.tui.live.picture import News
from crew.front.tui.panes.fact_words import fact_spans
from crew.front.tui.panes.pane import Pane, Unread
from crew.front.tui.widgets.line_list import ShownLine, heading
from crew.store.fact_log import facts_of

OF_TASK = frozenset({"task", "walk", "quest"})
OF_RUN = frozenset({"run", "terminal"})
OF_OTHERS = ("question", "message", "suspicion")


class TimelinePane(Pane):
    """What happened to the task, one line for each fact that a person may care about."""

    title: ClassVar[str] = "Timeline"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._facts: dict[int, Fact] = {}
        self._is_due = self._is_read = False

    def fill(self) -> None:
        self._facts = {}
        self._is_due, self._is_read = True, False
        self.say("reading what happened …" if self.task_id else "no task")

    def tick(self) -> None:
        if self._is_due and self.is_settled:
            self._is_due = False
            self.run_worker(self._read(self.task_id), exit_on_error=False)

    async def _read(self, task: str) -> None:
        wanted = list(subjects_of(self.picture.world, task))
        found = await self.read(lambda workplace: facts_of(workplace.db, wanted))
        if task != self.task_id:
            return
        if isinstance(found, Unread):
            self.say(found.why)
            return
        self._facts = {**dict(found), **self._facts}
        self._is_read = True
        self._show_facts(to_end=True)

    def take(self, news: News) -> None:
        if news.fresh:
            self.fill()
            return
        mine = {number: fact for number, fact in news.facts if self._is_mine(fact)}
        if mine:
            self._facts |= mine
            if self._is_read:
                self._show_facts(to_end=self.scroll_offset.y >= self.max_scroll_y)

    def _is_mine(self, fact: Fact) -> bool:
        if fact.kind in OF_TASK:
            return fact.subject == self.task_id
        if fact.kind in OF_RUN:
            return fact.subject.rpartition(".")[0] == self.task_id
        if fact.kind in OF_OTHERS:
            row = self.picture.world.rows(fact.kind).get(fact.subject)
            return getattr(row, "task", None) == self.task_id
        return False

    def _show_facts(self, *, to_end: bool) -> None:
        lines = list(self._lines())
        if not lines:
            self.say("nothing happened yet: s starts the task")
            return
        self.show(lines)
        if to_end:
            self.scroll_end(animate=False)

    def _lines(self) -> Iterator[ShownLine]:
        day = ""
        for _, fact in sorted(self._facts.items()):
            spans = fact_spans(fact)
            if spans is None:
                continue
            at = time.localtime(fact.at)
            if day != (day := time.strftime("%A, %Y-%m-%d", at)):
                yield heading(day)
            yield ShownLine(spans=((time.strftime(" %H:%M:%S  ", at), "muted"), *spans))


def subjects_of(world: World, task: str) -> Iterator[tuple[str, str]]:
    """The rows whose facts belong to a task: its own, and those of its runs and questions."""
    yield from ((kind, task) for kind in sorted(OF_TASK))
    for run in world.runs.values():
        if run.task == task:
            yield from ((kind, run.id) for kind in sorted(OF_RUN))
    for kind in OF_OTHERS:
        for row in world.rows(kind).values():
            if getattr(row, "task", None) == task:
                yield kind, row.id
