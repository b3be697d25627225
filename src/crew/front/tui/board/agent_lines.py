"""One agent as a line: symbol, name, kind, task, step, tokens, cost, and what it does now."""

from crew.domain.rows.agent import SYMBOLS, Agent, AgentState
from crew.front.tui.live.picture import Picture
from crew.front.tui.widgets.line_list import ShownLine
from crew.front.tui.widgets.paint import STATUS_STYLES, fit, safe


def agent_line(picture: Picture, agent: Agent, width: int) -> ShownLine:
    style = STATUS_STYLES[agent.state]
    run = picture.world.runs.get(agent.run or "")
    columns = (
        (f"{SYMBOLS[AgentState(agent.state)]} ", style),
        (fit(safe(agent.id), 4), "bold"),
        (fit(safe(agent.agent_kind), 9), "muted"),
        (fit(agent.state, 8), style),
        (fit(safe(agent.task or "-"), 5), "bold"),
        (fit(f"step {run.steps}" if run else "", 8), "muted"),
        (fit(_tokens(agent), 7), "muted"),
        (fit("unknown" if agent.cost_usd is None else f"${agent.cost_usd:.2f}", 8), "muted"),
    )
    return ShownLine(spans=(*columns, (_now(picture, agent, width), "")), key=agent.id)


def _tokens(agent: Agent) -> str:
    tokens = agent.input_tokens + agent.output_tokens
    return f"{tokens / 1000:.0f}k" if tokens >= 1000 else str(tokens)


def _now(picture: Picture, agent: Agent, width: int) -> str:
    """What it does now, or why it does nothing."""
    if agent.state == AgentState.STUCK:
        words = f"{agent.last_error} (u retries)"
    elif agent.state == AgentState.IDLE:
        words = agent.last_error
    elif picture.runner is None:
        words = "no runner: `crew run` continues it"
    elif agent.retry_at:
        words = agent.last_error
    elif agent.state == AgentState.WORKING:
        words = picture.doing.get(agent.id, "")
    else:
        words = {"done": "checking", "ready": "preparing"}.get(agent.state, "")
    return safe(words)[:width]
