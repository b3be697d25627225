"""Costs as lines: tokens and dollars of each task, agent, model or day, with a sparkline."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from crew.domain.world import World
from crew.front.cli.output import UNKNOWN, dollars, thousands
from crew.front.tui.widgets.line_list import ShownLine
from crew.front.tui.widgets.paint import fit, width_of
from crew.front.tui.widgets.safe_text import Span, safe
from crew.runner.cost_views import Spender, by_day, cost_groups, spenders
from crew.runner.views.row_views import total

if TYPE_CHECKING:
    from crew.config.model import AgentsSettings

BLOCKS = "▁▂▃▄▅▆▇█"
ROW_DAYS, ALL_DAYS = 14, 30


def sparkline(values: Sequence[float]) -> str:
    """One block for each value; nothing at all is a blank, the highest is a full block."""
    most = max(values, default=0.0)
    if most <= 0:
        return " " * len(values)
    steps = len(BLOCKS) - 1
    return "".join(BLOCKS[round(value / most * steps)] if value > 0 else " " for value in values)


def last_days(count: int, *, now: float) -> list[str]:
    """The names of the last days in UTC, today last."""
    today = datetime.fromtimestamp(now, UTC).date()
    return [(today - timedelta(days=back)).isoformat() for back in reversed(range(count))]


def spent_by_day(world: World, found: Sequence[Spender], days: Sequence[str]) -> list[float]:
    """The dollars of each day, or its tokens if no dollars are known."""
    groups = {day: total(some) for day, some in by_day(world, found).items()}
    views = [groups.get(day) for day in days]
    has_dollars = any(view["known_cost_usd"] for view in groups.values())
    return [_amount(view, has_dollars=has_dollars) if view else 0.0 for view in views]


def _amount(view: Mapping[str, Any], *, has_dollars: bool) -> float:
    if has_dollars:
        return float(view["known_cost_usd"])
    return float(view["input_tokens"] + view["output_tokens"])


def cost_lines(
    world: World,
    by: str,
    *,
    agents: Mapping[str, str],
    settings: "AgentsSettings | None",
    titles: Mapping[str, str],
    now: float,
) -> list[ShownLine]:
    """The table, the most expensive first; days in their order, the newest first."""
    groups = cost_groups(world, by, agents=agents, settings=settings)
    if not groups:
        return []
    views = {name: total(some) for name, some in groups.items()}
    names = sorted(views, key=lambda name: _rank(name, views[name], by))
    wide = width_of([*map(safe, names), by, "total"], least=6, most=28)
    days = last_days(ROW_DAYS, now=now)
    sparks = (
        {n: sparkline(spent_by_day(world, groups[n], days)) for n in names} if by != "day" else {}
    )
    most = max(_amount(one, has_dollars=True) for one in views.values())
    head = f"{fit(by, wide)} {'runs':>5} {'steps':>6} {'input':>7} {'output':>7} {'cost':>9}"
    lines = [ShownLine(spans=((f"{head}  {_head_of_last(by)}", "bold muted"),), is_heading=True)]
    for name in names:
        last = _bar(views[name], most) if by == "day" else sparks[name]
        spans = (*_row(safe(name), views[name], wide), (f"  {last}", "busy"))
        title = safe(titles.get(name, "")) if by == "task" else ""
        lines.append(ShownLine(spans=(*spans, (f"  {title}", "muted")), key=name))
    whole = _row("total", total(spenders(world)), wide)
    return [*lines, ShownLine(spans=whole, is_heading=True)]


def _head_of_last(by: str) -> str:
    return "" if by == "day" else f"last {ROW_DAYS} days"


def _rank(name: str, view: Mapping[str, Any], by: str) -> tuple[Any, ...]:
    if by == "day":
        return (tuple(-ord(letter) for letter in name),)
    tokens = view["input_tokens"] + view["output_tokens"]
    return (-view["known_cost_usd"], -tokens, name)


def _bar(view: Mapping[str, Any], most: float) -> str:
    share = _amount(view, has_dollars=True) / most if most > 0 else 0.0
    return "█" * round(share * 20)


def _row(name: str, view: Mapping[str, Any], wide: int) -> tuple[Span, ...]:
    tokens = f"{thousands(view['input_tokens']):>7} {thousands(view['output_tokens']):>7}"
    price, style = dollars(view["cost_usd"]), ""
    if price == UNKNOWN and view["known_cost_usd"]:
        price = f"≥{dollars(view['known_cost_usd'])} ?"
    if view["cost_usd"] is None:
        style = "warn"
    counts = f" {view['runs']:>5} {view['steps']:>6} {tokens} "
    return ((fit(name, wide), "bold"), (counts, "muted"), (f"{price:>9}", style))


def days_lines(world: World, *, now: float) -> list[ShownLine]:
    """All costs of the last days as one sparkline."""
    days = last_days(ALL_DAYS, now=now)
    found = spenders(world)
    values = spent_by_day(world, found, days)
    whole = total(found)
    known = whole["known_cost_usd"]
    words = f"highest ${max(values):.2f}" if known else f"highest {max(values):.0f} tokens"
    lines = [
        ShownLine(spans=((f"the last {ALL_DAYS} days, {words}", "bold muted"),)),
        ShownLine(spans=((sparkline(values), "busy"),)),
        ShownLine(spans=((f"{days[0][5:]}{' ' * (ALL_DAYS - 10)}{days[-1][5:]}", "muted"),)),
    ]
    if known and whole["cost_usd"] is None:
        lines.append(ShownLine(spans=(("≥ … ?: a part of the costs is unknown", "muted"),)))
    return lines
