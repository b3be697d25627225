"""Draws one frame of the live view: the agents, their present work, and the cost so far."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from crew.domain.rows.agent import SYMBOLS, Agent, AgentState
from crew.domain.rows.channel import Channel
from crew.domain.rows.quest import Quest, QuestState
from crew.domain.rows.task import TaskState
from crew.domain.world import World
from crew.front.cli.call import Call
from crew.front.cli.output import cut, dollars, line, table_lines, thousands
from crew.front.cli.quests.quest_table import closed_words
from crew.front.cli.watching.ps import NO_RUNNER, UNDER_WAY, around, without_runner
from crew.runner.cost_views import Spender, spenders
from crew.runner.views.quest_views import quest_line, role_title
from crew.runner.views.row_views import agents_by_age
from crew.store.database import Database
from crew.store.fact_log import load_world
from crew.store.kept_values import all_doing
from crew.store.runner_lock import find_runner

if TYPE_CHECKING:
    from crew.workplace import Workplace

MOST_LINES = 3
"""The most quests, and the most channels, that get a line."""

LONGEST_TITLE = 40

HEAD = (" ", "NAME", "STATUS", "TASK", "STEPS", "TOKENS", "COST", "NOW")


def frame_lines(call: Call, workplace: "Workplace", db: Database) -> list[str]:
    world = load_world(db)
    return frame(call, world, doing=all_doing(db), lock=workplace.lock_file)


def frame(call: Call, world: World, *, doing: dict[str, str], lock: Path) -> list[str]:
    agents = agents_by_age(world)
    runner = find_runner(lock)
    rows = [
        _row(world, agent, doing.get(agent.id, "") if runner else NO_RUNNER) for agent in agents
    ]
    shown = table_lines(HEAD, rows, call, width=None) if rows else ["no agents yet"]
    unmerged = [task.id for task in world.tasks.values() if task.awaits_merge]
    first, *waiting = around(world, runner, unmerged=unmerged)
    total = _totals(spenders(world))
    return [
        first,
        count_tasks(world),
        total,
        "",
        *shown,
        *_quests(world),
        *_channels(world),
        *waiting,
    ]


def open_quests(world: World) -> list[Quest]:
    found = (one for one in world.quests.values() if one.state == QuestState.OPEN)
    return sorted(found, key=lambda one: one.created_at)


def open_channels(world: World) -> list[Channel]:
    found = (one for one in world.channels.values() if one.is_open)
    return sorted(found, key=lambda one: one.opened_at)


def role_of(world: World, agent: Agent) -> dict[str, str | None]:
    """The role of an agent and what it does; None for an agent without a role."""
    run, task = world.runs.get(agent.run or ""), world.tasks.get(agent.task or "")
    role = (run.role if run and run.is_live else "") or None
    title = role_title(world, task.quest, role) if role and task else ""
    return {"role": role, "role_title": title or None}


def _quests(world: World) -> Iterator[str]:
    """One line for each quest: its progress and the role that acts for the request."""
    for one in open_quests(world)[:MOST_LINES]:
        view = quest_line(world, one)
        items = f"{view['steps_done']} of {view['steps_all']} items done{closed_words(view)}"
        asks = f", asks {', '.join(view['questions'])}" if view["questions"] else ""
        progress = items if view["steps_all"] else "no plan yet"
        title = line(view["title"], limit=LONGEST_TITLE)
        yield f"quest {one.id} {title}: {progress}, at {view['stage']}{asks}"


def _channels(world: World) -> Iterator[str]:
    for one in open_channels(world)[:MOST_LINES]:
        turn = f"{one.holder} has the turn" if one.holder else "no member has the turn"
        then = f", then {', '.join(one.queue)}" if one.queue else ""
        yield f"channel {one.name}: {turn}{then}; {one.sequence} messages"


def count_tasks(world: World) -> str:
    tasks = [task for task in world.tasks.values() if not task.gone]
    states = [str(task.state) for task in tasks if task.is_there]
    away = "whose file is away (is another branch checked out?)"
    counts = [(str(state), states.count(state)) for state in TaskState]
    counts.append((away, len(tasks) - len(states)))
    return "tasks: " + (", ".join(f"{count} {words}" for words, count in counts if count) or "none")


def _totals(found: Sequence[Spender]) -> str:
    """The same sum as that of `crew cost`; not all of it belongs to an agent of the table."""
    tokens = sum(one.input_tokens + one.output_tokens for one in found)
    costs = [one.cost_usd for one in found]
    total = dollars(None if None in costs else sum(cost or 0.0 for cost in costs))
    return f"total: {thousands(tokens)} tokens, {total}"


def _row(world: World, agent: Agent, doing: str) -> tuple[str, ...]:
    task = world.tasks.get(agent.task or "")
    run = world.runs.get(agent.run or "")
    return (
        SYMBOLS[AgentState(agent.state)],
        agent.id,
        agent.state,
        line(f"{task.id} {task.title}", limit=_title_limit()) if task else "-",
        str(run.steps if run else 0),
        thousands(agent.input_tokens + agent.output_tokens),
        dollars(agent.cost_usd),
        _with_role(world, agent, _now(agent, doing)),
    )


def _with_role(world: World, agent: Agent, words: str) -> str:
    role = ", ".join(word for word in role_of(world, agent).values() if word)
    return ": ".join(part for part in (role, words) if part)


def _title_limit() -> int:
    """The longest title; a narrow terminal cuts it, so that the agent's present work is visible."""
    return min(40, max(10, shutil.get_terminal_size().columns - 70))


def _now(agent: Agent, doing: str) -> str:
    if doing == NO_RUNNER and agent.state in UNDER_WAY:
        return without_runner(agent.last_error, tries_again=agent.retry_at is not None)
    if agent.state == AgentState.WORKING:
        return agent.last_error if agent.retry_at else doing
    if agent.state == AgentState.STUCK:
        return agent.last_error
    return {"done": "checking", "ready": "preparing"}.get(agent.state, "")


class Painter:
    """Draws a frame over the last one, cut to the terminal; plain ANSI, no library."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._height = 0

    def paint(self, lines: list[str]) -> None:
        size = shutil.get_terminal_size()
        shown = [cut(text, size.columns - 1) for text in lines[: max(1, size.lines - 1)]]
        up = f"\x1b[{self._height}F" if self._height else ""
        self._stream.write(up + "\x1b[J" + "".join(f"{text}\n" for text in shown))
        self._stream.flush()
        self._height = len(shown)
