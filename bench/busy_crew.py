"""A crew at work without agents: `python -m bench.busy_crew REPO` records what 50 of them do.

The view sees what it sees beside a real runner: its lock, facts in transactions of a few, and the
words of agents. Each word tells when it was written.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from crew.domain.kernel.fact import Fact
from crew.domain.world import World
from crew.store.fact_log import load_world, record
from crew.store.kept_values import keep_doing
from crew.store.runner_lock import RUNNER, writer_lock
from crew.workplace import Workplace, find_workplace

FACTS_A_SECOND = 10
WORDS_A_SECOND = 50
"""What 50 agents do: each says a word a second, and every few seconds a step ends or begins."""


def begin(workplace: Workplace, *, agents: int, at: float) -> None:
    """Record that agents work on the first tasks of the source."""
    items = workplace.source.scan(None).by_id
    facts = [_seen(task, at) for task in items]
    for number, task in zip(range(agents), items, strict=False):
        facts += _begun(f"A{number}", task, at - 60 - 7 * number)
    workplace.keep_source()
    record(workplace.db, World(), facts)


def _seen(task: str, at: float) -> Fact:
    changes = {"title": f"task {task}", "target": "main", "created_at": at}
    return Fact(kind="task", subject=task, trigger="seen", at=at, changes=changes)


def _begun(agent: str, task: str, at: float) -> Iterator[Fact]:
    """The facts from the spawn of an agent to its first step."""
    run = f"{task}.1"
    yield Fact(
        kind="agent", subject=agent, trigger="spawned", at=at, changes={"agent_kind": "scripted"}
    )
    yield Fact(
        kind="run",
        subject=run,
        trigger="created",
        at=at,
        changes={"task": task, "agent": agent, "agent_kind": "scripted", "started_at": at},
    )
    moves = (
        ("task", task, "started", "todo", "in_progress", {"run": run, "branch": f"crew-{task}"}),
        ("agent", agent, "assigned", "idle", "ready", {"task": task, "run": run}),
        ("run", run, "prepared", "init", "working", {}),
        ("agent", agent, "step_started", "ready", "working", {"pid": 1}),
    )
    for kind, subject, trigger, source, target, changes in moves:
        yield Fact(
            kind=kind,
            subject=subject,
            trigger=trigger,
            at=at,
            source=source,
            target=target,
            changes={**changes, "state": target},
        )


def work(workplace: Workplace) -> None:
    """Record facts and words at the rate of a real crew, until this process is ended."""
    db, number = workplace.db, 0
    world = load_world(db)
    agents = list(world.agents)
    with writer_lock(workplace.lock_file, role=RUNNER, started="now"):
        print("at work", flush=True)
        began = time.monotonic()
        while True:
            agent = world.agents[agents[number % len(agents)]]
            keep_doing(db, agent.id, f"says {time.time():.3f}", at=time.time())
            if number % (WORDS_A_SECOND // FACTS_A_SECOND) == 0:
                world = record(db, world, _step(world, agent.id))
            number += 1
            time.sleep(max(0.0, began + number / WORDS_A_SECOND - time.monotonic()))


def _step(world: World, name: str) -> list[Fact]:
    """One more step of an agent: two facts, as a real one has."""
    agent, at = world.agents[name], time.time()
    run = world.runs[agent.run or ""]
    return [
        Fact(
            kind="agent",
            subject=name,
            trigger="step_started",
            at=at,
            source="working",
            target="working",
            changes={"state": "working", "input_tokens": agent.input_tokens + 1000},
        ),
        Fact(kind="run", subject=run.id, trigger="step", at=at, changes={"steps": run.steps + 1}),
    ]


if __name__ == "__main__":
    work(find_workplace(Path(sys.argv[1])))
