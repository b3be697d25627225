"""Small worlds to start from, and what a list of facts makes of them."""

from dataclasses import replace
from functools import reduce

from hypothesis import HealthCheck, settings

from crew.domain.clock import Clock
from crew.domain.commands import CommandKind
from crew.domain.kernel.fact import Fact
from crew.domain.plan import decide, plan
from crew.domain.rows.agent import Agent
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.rows.terminal import Terminal
from crew.domain.rules import Rules
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.world import Row, World, apply, row_from, with_rows

RULES = Rules()

patient = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
"""How properties are tried: a busy machine is no fault."""

_RUN_STATE = {"ready": "init", "working": "working", "done": "reviewing", "stuck": "working"}


def after(world: World, facts: list[Fact]) -> World:
    return reduce(apply, facts, world)


def waits(
    world: World, now: float, *, rules: Rules = RULES, scope: Scope = EVERYTHING
) -> dict[CommandKind | None, float]:
    """When time alone changes what is decided or planned, by the kind of command that follows."""
    clock = Clock(now, kinds=scope.kinds)
    decide(world, clock, rules=rules, scope=scope)
    plan(world, clock, rules=rules, scope=scope)
    return clock.waits


def given(*rows: Row) -> World:
    return with_rows(rows)


def holding(state: str, *, wants_terminal: bool = False, **changes) -> World:
    """Agent A in this state with run 1.1 of task 1; a change goes to whoever has such a field."""
    agent = Agent(id="A", agent_kind="claude", state=state, task="1", run="1.1")
    run = Run(id="1.1", task="1", agent="A", agent_kind="claude", state=_RUN_STATE[state])
    worktree = "" if state == "ready" else "/trees/1"
    task = Task(
        id="1", state="in_progress", run="1.1", run_count=1, target="main", worktree=worktree
    )
    asked = [Terminal(id="1.1", task="1")] if wants_terminal else []
    return with_changes(given(agent, run, task, *asked), **changes)


def at_terminal(
    *, pid: int | None = 42, leaving: str = "", is_up: bool = True, number: int = 0, **changes
) -> World:
    """Run 1.1 of task 1 in a terminal, open unless the arguments tell otherwise."""
    run = Run(
        id="1.1",
        task="1",
        agent_kind="claude",
        state="working",
        session="s-1",
        session_used=True,
    )
    state = "leaving" if leaving else "open" if pid else "asked"
    started = 7 if pid else None
    first = {"pid": pid, "started": started} if is_up else {}
    terminal = Terminal(
        id="1.1",
        task="1",
        state=state if is_up else "closed",
        number=number,
        leaving=leaving,
        **first,
    )
    task = Task(
        id="1",
        state="in_progress",
        written="in_progress",
        run="1.1",
        run_count=1,
        target="main",
        branch="crew-1",
        worktree="/trees/1",
    )
    return with_changes(given(run, task, terminal), **changes)


def with_changes(world: World, **changes) -> World:
    """`run_round=3` sets `round` of the run; so do `agent_`, `task_` and `terminal_`."""
    for name, value in changes.items():
        kind, _, field = name.partition("_")
        (row,) = world.rows(kind).values()
        table = {f"{kind}s": {row.id: replace(row, **{field: value})}}
        world = replace(world, **table)
    return world


def queued(*ids: str, target: str = "main") -> list[Row]:
    """Done tasks that wait for the target in this order, each with its completed run."""
    rows: list[Row] = []
    for place, id_ in enumerate(ids):
        run = f"{id_}.1"
        rows += [
            Task(
                id=id_,
                state="done",
                written="done",
                run=run,
                target=target,
                head=f"head-{id_}",
                queued_at=float(place),
                branch=f"crew-{id_}",
                worktree=f"/trees/{id_}",
            ),
            Run(id=run, task=id_, agent_kind="claude", state="complete"),
        ]
    return rows


def queue_of(*ids: str, **changes) -> MergeQueue:
    """A queue on commit `base` whose candidates are `base+1`, `base+1+2`, …"""
    chain, commit = [], "base"
    for id_ in ids:
        commit += f"+{id_}"
        chain.append((id_, f"head-{id_}", commit))
    settled = {"integration": "base", "base": "base", "delivered": "base"}
    return row_from("line", {"id": "main", "chain": chain, **settled, **changes})
