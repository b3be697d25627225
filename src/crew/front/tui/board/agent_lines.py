"""One agent as a line: symbol, name, kind, task, step, tokens, cost, and what it does now."""

from crew.domain.rows.agent import SYMBOLS, Agent, AgentState
from crew.front.tui.live.picture import Picture
from crew.front.tui.widgets.line_list import ShownLine
from crew.front.tui.widgets.paint import STATUS_STYLES, fit
from crew.front.tui.widgets.safe_text import Span, safe
from crew.runner.views.quest_views import role_title
from crew.runner.views.row_views import kind_now

WIDE = 100
"""From this width on, the columns have room for longer names."""


def agent_line(picture: Picture, agent: Agent, width: int) -> ShownLine:
    style = STATUS_STYLES[agent.state]
    run = picture.world.runs.get(agent.run or "")
    is_wide = width >= WIDE
    columns: list[Span] = [
        (f"{SYMBOLS[AgentState(agent.state)]} ", style),
        (fit(safe(agent.id), 4), "bold"),
        (fit(safe(kind_now(picture.world, agent)), 14 if is_wide else 9), "muted"),
        (fit(agent.state, 8), style),
        (fit(safe(agent.task or "-"), 6 if is_wide else 4), "bold"),
        (fit(f"step {run.steps}" if run else "", 8), "muted"),
        (fit(_tokens(agent), 7 if is_wide else 5), "muted"),
        (fit("unknown" if agent.cost_usd is None else f"${agent.cost_usd:.2f}", 8), "muted"),
    ]
    if role := role_of(picture, agent):
        columns.append((f"{safe(role)}: ", "note"))
    return ShownLine(spans=(*columns, (_now(picture, agent), "")), key=agent.id)


def role_of(picture: Picture, agent: Agent) -> str:
    """The role that the agent has in a quest and what that does; empty without one."""
    run = picture.world.runs.get(agent.run or "")
    task = picture.world.tasks.get(agent.task or "")
    if run is None or task is None or not run.is_live or not run.role:
        return ""
    title = role_title(picture.world, task.quest, run.role)
    return ", ".join(filter(None, (run.role, title)))


def _tokens(agent: Agent) -> str:
    tokens = agent.input_tokens + agent.output_tokens
    if tokens >= 1_000_000:
        return f"{tokens / 1_000_000:.1f}M"
    return f"{tokens / 1000:.0f}k" if tokens >= 1000 else str(tokens)


def _now(picture: Picture, agent: Agent) -> str:
    """What it does now, or why it does nothing."""
    if agent.state == AgentState.STUCK:
        words = f"{agent.last_error} (u retries)"
    elif agent.state == AgentState.IDLE:
        words = agent.last_error
    elif picture.runner is None:
        words = "no runner: `crew run` continues it"
        words += f"; last error: {agent.last_error}" if agent.retry_at else ""
    elif agent.retry_at:
        words = agent.last_error
    elif agent.state == AgentState.WORKING:
        words = picture.doing.get(agent.id, "")
    else:
        words = {"done": "checking", "ready": "preparing"}.get(agent.state, "")
    return safe(words)
