"""The costs: by task, agent, model or day, with a sparkline of the last days."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from crew.domain.kernel.errors import CrewError
from crew.front.tui.board.cost_lines import cost_lines, days_lines
from crew.front.tui.board.view_choices import following
from crew.front.tui.live.picture import News
from crew.front.tui.pages.page import Page
from crew.front.tui.widgets.line_list import ShownLine
from crew.front.tui.widgets.sheet import Sheet
from crew.runner.cost_views import WAYS
from crew.store.fact_log import run_agents
from crew.workplace import Workplace

if TYPE_CHECKING:
    from crew.config.model import AgentsSettings

REST_S = 1.0
"""Costs change with each step of each agent: they are added up at most this often."""


class CostPage(Page):
    """What was spent; b adds it up by something else."""

    title: ClassVar[str] = "Cost"
    empty: ClassVar[str] = "no runs yet, so nothing was spent"
    kinds: ClassVar[tuple[str, ...]] = ("run", "member", "channel", "manager")
    DEFAULT_CSS = "CostPage { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "next_way", "by task, agent, model or day", show=False)
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._sheet = Sheet(height="6")
        self._by = WAYS[0]
        self._agents: dict[str, str] = {}
        self._settings: AgentsSettings | None = None
        self._listed_at = 0.0
        self._is_due = False

    def below(self) -> Iterable[Widget]:
        return (self._sheet,)

    def take(self, news: News) -> None:
        if news.fresh:
            self.run_worker(self._read_past(), group="past", exclusive=True)
        for _, fact in news.facts:
            if fact.kind == "run" and fact.changes.get("agent"):
                self._agents[fact.subject] = str(fact.changes["agent"])
        super().take(news)

    async def _read_past(self) -> None:
        agents, self._settings = await asyncio.to_thread(_read, self.view.root)
        self._agents = {**agents, **self._agents}
        self._is_stale = True
        self.catch_up()

    def catch_up(self) -> None:
        wait_s = self._listed_at + REST_S - time.monotonic()
        if wait_s <= 0:
            super().catch_up()
        elif not self._is_due:
            self._is_due = True
            self.set_timer(wait_s, self._catch_up_late)

    def _catch_up_late(self) -> None:
        self._is_due = False
        super().catch_up()

    def list_again(self) -> None:
        self._listed_at, now = time.monotonic(), time.time()
        world = self.picture.world
        lines = cost_lines(
            world,
            self._by,
            agents=self._agents,
            settings=self._settings,
            titles=self._titles(),
            now=now,
        )
        self.show(lines or self.nothing())
        self._sheet.display = bool(lines)
        below = [*_ways(self._by), *days_lines(world, now=now)] if lines else []
        self._sheet.tell(lambda _width: below)

    def _titles(self) -> Mapping[str, str]:
        return {
            run.task: self.picture.title_of(run.task) for run in self.picture.world.runs.values()
        }

    def action_next_way(self) -> None:
        self._by = following(self._by, WAYS)
        self.list_again()

    def chosen_task(self) -> str:
        key = self.cursor_key
        return key if self._by == "task" and key in self.picture.items else ""


def _ways(by: str) -> list[ShownLine]:
    names = [(f" {way} ", "reverse" if way == by else "muted") for way in WAYS]
    return [ShownLine(spans=(("b", "key"), (" by ", "muted"), *names))]


def _read(root: Path) -> "tuple[dict[str, str], AgentsSettings | None]":
    workplace = Workplace(root=root)
    try:
        return run_agents(workplace.db), workplace.settings.agents
    except (CrewError, OSError):
        return {}, None
    finally:
        workplace.close_database()
