"""Starts a runner: for `crew run`, for one task or channel, or for a short command."""

import asyncio
import gc
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import field
from typing import Any, Protocol

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.requests import Request
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.world import World
from crew.runner.engine import Engine
from crew.runner.interrupts import Interrupts
from crew.runner.lost_folder import KeptFolder
from crew.runner.notices.notices import telling_people
from crew.runner.outside.local_machine import LocalOutside
from crew.runner.requests.agent_door import agent_door
from crew.runner.requests.tokens import Tokens
from crew.runner.runner import Runner
from crew.runner.sandbox.hosts_in_runner import hosts_of
from crew.runner.startup import repair_before_rows
from crew.runner.views.state_files import StateFiles
from crew.runner.writer_lock import holding_the_lock
from crew.store.fact_log import load_world, record
from crew.store.kept_values import keep_setting, setting
from crew.store.runner_lock import RUNNER
from crew.workplace import Workplace


@frozen
class RunnerOptions:
    """How a runner runs: how long, its scope, and what Ctrl-C and new facts do.

    With `drain` it ends when nothing more can change. Without `patient`, the first Ctrl-C ends the
    steps. `told` gets all facts once they are stored.
    """

    drain: bool = False
    scope: Scope = EVERYTHING
    patient: bool = True
    interrupts: Interrupts = field(default_factory=Interrupts)
    told: Callable[[Iterable[Fact]], None] = lambda _facts: None


def make_runner(
    workplace: Workplace,
    options: RunnerOptions | None = None,
    *,
    epoch: int = 0,
    kept: KeptFolder | None = None,
) -> Runner:
    """Build a runner; the caller holds the lock."""
    options = options or RunnerOptions()
    workplace.repo_id  # noqa: B018 - read here, since threads must not touch the database
    db, outside, kept = workplace.db, LocalOutside(workplace), kept or KeptFolder(workplace)

    def store(world: World, facts: Iterable[Fact]) -> World:
        kept.check()
        return record(db, world, facts)

    engine = Engine(
        outside=outside,
        rules=workplace.rules,
        epoch=epoch,
        world=load_world(db),
        store=store,
        now=time.time,
        session_of=workplace.session_of,
        scope=options.scope,
    )
    return Runner(
        workplace=workplace,
        outside=outside,
        engine=engine,
        tokens=Tokens(workplace.folder),
        folder=kept,
        files=StateFiles(
            workplace=workplace, world=lambda: engine.world, failed=engine.wait_or_fail
        ),
        drain=options.drain,
        patient=options.patient,
        interrupts=options.interrupts,
        told=options.told,
    )


class Companion(Protocol):
    """Something that runs next to the runner, on its loop, and ends with it."""

    def __call__(self, runner: Runner, /) -> AbstractAsyncContextManager[None]: ...


def _nothing(_runner: Runner) -> AbstractAsyncContextManager[None]:
    return nullcontext()


def run_crew(
    workplace: Workplace,
    prepare: Callable[[Runner], None],
    *,
    options: RunnerOptions,
    beside: Companion = _nothing,
) -> Runner:
    """Take the lock and run; `prepare` may send a request first, for example to add agents."""
    kept = KeptFolder(workplace)
    kept.remember()
    with kept.guarding(), holding_the_lock(workplace, role=RUNNER):
        epoch = int(setting(workplace.db, "epoch") or 0) + 1
        keep_setting(workplace.db, "epoch", str(epoch))
        repair_before_rows(workplace)
        runner = make_runner(workplace, options, epoch=epoch, kept=kept)
        prepare(runner)
        gc.freeze()  # what is loaded by now stays: to look at it again costs a fifth of a step
        asyncio.run(_run_with_signals(runner, beside))
        return runner


async def _run_with_signals(runner: Runner, beside: Companion) -> None:
    runner.interrupts.listen(runner)
    telling = telling_people(runner.workplace, runner.engine)
    async with hosts_of(runner), agent_door(runner), beside(runner), telling:
        await runner.run()


def run_once(workplace: Workplace, request: Request, scope: Scope) -> Any:
    """Answer one request and do what follows in this scope; the caller holds the lock."""
    return asyncio.run(_run_once(workplace, request, scope))


async def _run_once(workplace: Workplace, request: Request, scope: Scope) -> Any:
    runner = make_runner(workplace, RunnerOptions(drain=True, scope=scope))
    runner.take_in()
    reply = runner.heed(request)
    async with hosts_of(runner):
        await runner.run()
    return reply
