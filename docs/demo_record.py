"""A demo as facts and words with their times: watched once, then shown in the view at any time."""

import asyncio
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from picture import Screen, screen_of

from crew.domain.kernel.fact import Fact
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import TaskItem
from crew.domain.world import World, apply_all
from crew.front.tui.board.view_choices import ViewChoices
from crew.front.tui.live.picture import News, Picture
from crew.front.tui.view_app import CrewView
from crew.store.database import open_database
from crew.store.fact_log import facts_after
from crew.store.kept_values import all_doing

RECORD = Path(__file__).with_name("demo_record.json")
SIZE = (120, 30)
EVERY_S = 0.5
LONGEST = 120
"""Longer texts of facts, such as the output of a gate, are not shown in the demo."""

NOON = 1_794_398_400.0
FACT = ("kind", "subject", "trigger", "source", "target")


def record() -> dict[str, Any]:
    """Run a demo and keep what it recorded: its facts, and what its agents said."""
    argv = [sys.executable, "-m", "crew", "demo", "--keep"]
    demo = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert demo.stderr
    line = demo.stderr.readline()
    found = re.search(r"in (\S+)$", line)
    assert found, line
    db = open_database(Path(found[1]) / ".crew" / "crew.db")
    words: list[tuple[float, str, str]] = []
    known: dict[str, str] = {}
    while demo.poll() is None:
        for agent, said in all_doing(db).items():
            if known.get(agent) != said:
                known[agent] = said
                words.append((time.time(), agent, said))
        time.sleep(0.05)
    facts = facts_after(db)
    begin = facts[0][1].at
    return {
        "facts": [_plain(fact, begin) for _, fact in facts],
        "words": [[round(at - begin, 2), agent, said] for at, agent, said in words],
    }


def _plain(fact: Fact, begin: float) -> list[Any]:
    changes = {
        name: round(value - begin, 2) if _is_time(name, value) else value
        for name, value in fact.changes.items()
        if _is_short(value)
    }
    return [round(fact.at - begin, 2), *(getattr(fact, name) for name in FACT), changes]


def _is_time(name: str, value: object) -> bool:
    return name.endswith("_at") and isinstance(value, float)


def _is_short(value: object) -> bool:
    return len(json.dumps(value)) <= LONGEST


class _NoReader:
    """The view is told by hand what it shows."""

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


def frames(kept: dict[str, Any]) -> list[tuple[float, Screen]]:
    """The screens of the view that differ from the one before, with their times."""
    return asyncio.run(_frames(kept))


async def _frames(kept: dict[str, Any]) -> list[tuple[float, Screen]]:
    facts = [_fact(values) for values in kept["facts"]]
    last = max(facts[-1].at, NOON + kept["words"][-1][0])
    view = CrewView(Path("shop"), choices=ViewChoices(everything=True))
    view._reader = _NoReader()  # type: ignore[assignment]  # noqa: SLF001
    found: list[tuple[float, Screen]] = []
    world, number, now = World(), 0, NOON
    async with view.run_test(size=SIZE) as pilot:
        while now <= last + EVERY_S:
            newer = [fact for fact in facts[number:] if fact.at <= now]
            world, number = apply_all(world, newer), number + len(newer)
            picture = _picture(world, kept["words"], number, now)
            with patch("time.time", lambda now=now: now):
                view._hand_over(News(picture=picture, fresh=True, tasks_changed=True))  # noqa: SLF001
                await pilot.pause()
                await pilot.pause()
            screen = screen_of(view.screen._compositor.render_strips())  # noqa: SLF001
            if not found or found[-1][1] != screen:
                found.append((round(now - NOON, 2), screen))
            now += EVERY_S
    return found


def _fact(values: list[Any]) -> Fact:
    at, *names, changes = values
    times = {name: NOON + value for name, value in changes.items() if _is_time(name, value)}
    named = dict(zip(FACT, names, strict=True))
    return Fact(at=NOON + at, **named, changes={**changes, **times})


def _picture(world: World, words: list[Any], number: int, now: float) -> Picture:
    items = {
        task.id: TaskItem(
            id=task.id, title=task.title, deps=task.deps, status=TaskState(task.state)
        )
        for task in world.tasks.values()
    }
    doing = {agent: said for at, agent, said in words if NOON + at <= now}
    runner = {"pid": 4242, "started": "2026-11-11T12:00:00Z"}
    return Picture(world=world, items=items, doing=doing, runner=runner, number=number)
