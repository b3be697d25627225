"""The agents: symbol, kind, task, step, tokens, cost, and what each does now."""

from typing import ClassVar

from crew.domain.rows.agent import Agent
from crew.front.tui.board.agent_lines import agent_line
from crew.front.tui.live.picture import News
from crew.front.tui.pages.page import Page
from crew.front.tui.widgets.line_list import ShownLine
from crew.runner.views.row_views import agents_by_age


class AgentPage(Page):
    """All agents of the crew; the small panel below the tasks is another one of these."""

    title: ClassVar[str] = "Agents"
    empty: ClassVar[str] = "no agents yet: a runner makes some by itself (:run), or :spawn"
    kinds: ClassVar[tuple[str, ...]] = ("agent",)

    def take(self, news: News) -> None:
        super().take(news)
        if not self.concerns(news):
            self.freshen()

    def list_again(self) -> None:
        agents = agents_by_age(self.picture.world)
        if agents:
            self.show([agent.id for agent in agents], self._line_of, key_of=str)
        else:
            self.show(self.nothing())

    def _line_of(self, name: str, width: int) -> ShownLine:
        return agent_line(self.picture, self.picture.world.agents[name], width)

    @property
    def agent(self) -> Agent | None:
        """The agent under the cursor."""
        row = self.cursor_row
        return self.picture.world.agents.get(row) if isinstance(row, str) else None

    def chosen_agent(self) -> str:
        return self.agent.id if self.agent else ""

    def chosen_task(self) -> str:
        return (self.agent.task or "") if self.agent else ""
