"""Carries out a request without a runner: lock, load, answer and record in this process.

Most requests only make facts. The engine, which is slow to load, is started only when something has
to be done outside: a worktree to remove, a task file to write, a branch to land.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from crew.domain.clock import Clock
from crew.domain.commands import CommandKind
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.plan import following, plan
from crew.domain.request_verbs import VERBS, answer
from crew.domain.requests import Answer, Request
from crew.domain.scope import Scope
from crew.domain.world import World
from crew.runner.arrivals import arrivals, is_taken_in, keep_taken_in
from crew.runner.requests.checked_requests import writable
from crew.runner.terminals.dead_terminals import terminal_ends
from crew.runner.views.documents import Documents
from crew.runner.writer_lock import holding_the_lock
from crew.store.fact_log import load_world, record
from crew.workplace import Workplace


def answer_alone(
    workplace: Workplace, request: Request, *, only: frozenset[CommandKind], role: str
) -> Any:
    """Answer a request; commands of these kinds that follow are carried out before it returns."""
    with holding_the_lock(workplace, role=role):
        scope = Scope(kinds=only, takes_work=False)
        if "token" in request.args or request.verb not in VERBS:
            return _run_engine(workplace, request, scope)
        asked = _answer(workplace, request, scope)
    if isinstance(asked, CrewError):  # inside the lock it would count as this writer's failure
        raise asked
    return asked.reply


def _answer(workplace: Workplace, request: Request, scope: Scope) -> Answer | CrewError:
    """The reply, or the refusal."""
    before = load_world(workplace.db)
    alone = _Alone(workplace=workplace, world=before, scope=scope)
    alone.take_in()
    try:
        asked = alone.answer(request)
    except CrewError as refusal:
        return refusal
    if alone.has_due():
        _run_engine(workplace, Request(verb="look", args={}), scope)
    else:
        Documents(workplace=workplace, runs=before.runs).write(alone.world, runner_up=False)
    return asked


def _run_engine(workplace: Workplace, request: Request, scope: Scope) -> Any:
    from crew.runner.run_crew import run_once  # noqa: PLC0415 - the heaviest import of all

    return run_once(workplace, request, scope)


@dataclass(slots=True, kw_only=True)
class _Alone:
    """The world, and the runner's answers and repairs without its loop."""

    workplace: Workplace
    world: World
    scope: Scope

    def take_in(self) -> None:
        """Bring the world up to date with the task source, if that has changed."""
        stamp = self.workplace.source.stamp()
        if is_taken_in(self.workplace, stamp):
            return
        self._record(arrivals(self.workplace, self.world))
        if self.world.tasks:
            self.workplace.keep_source()
        keep_taken_in(self.workplace, stamp)

    def answer(self, request: Request) -> Answer:
        rules, now = self.workplace.rules, time.time()
        if request.verb == "cleanup":  # without a runner, no step runs in any worktree
            request = Request(verb=request.verb, args={**request.args, "idle": True})
        asked = answer(self.world, writable(request), rules=rules, at=now)
        self._record(asked.facts)
        self._record(terminal_ends(self.world, at=now))
        self._record(self._screens(now))
        self._record(following(self.world, Clock(now), rules=rules, scope=self.scope))
        return asked

    def _screens(self, now: float) -> list[Fact]:
        """What the screens of open terminals show."""
        if not any(one.is_open for one in self.world.terminals.values()):
            return []
        from crew.runner.terminals.terminal_input import terminal_looks  # noqa: PLC0415 - most crews have no terminal

        return terminal_looks(self.workplace, self.world, at=now)

    def has_due(self) -> bool:
        """Whether a command is due now, or later without any further change."""
        clock = Clock(time.time(), kinds=self.scope.kinds)
        due = plan(self.world, clock, rules=self.workplace.rules, scope=self.scope)
        return bool(due or clock.waits)

    def _record(self, facts: Iterable[Fact]) -> None:
        self.world = record(self.workplace.db, self.world, facts)
