"""The manager: an agent in the repository's root that works only with crew's own commands."""

import asyncio
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

from crew.agents.adapter import Adapter, StepOrder, Watch, adapter_for
from crew.agents.terminal import tmux
from crew.agents.terminal.tmux import Tmux
from crew.config.prompts import prompt
from crew.domain.agents.manager_board import ManagerMove, Point, board, next_move
from crew.domain.kernel.errors import Conflict, CrewError
from crew.domain.kernel.quotation import headline
from crew.domain.lead_choice import LEADS
from crew.domain.requests import Request
from crew.domain.rows.step import StepOutcome
from crew.domain.world import World, apply_all
from crew.runner.arrivals import arrivals
from crew.runner.background.manager_door import DOOR_VARIABLE, door_of, open_door, serving
from crew.runner.outside.terminals import TerminalOrder, open_terminal
from crew.runner.prompts.step_orders import agent_settings, agent_spec
from crew.runner.prompts.step_prompt import own_words
from crew.runner.requests.ask_crew import ask
from crew.runner.sandbox.confinement import for_manager
from crew.runner.sandbox.listed_hosts import hosts_listed, hosts_served
from crew.runner.views.step_log import start_step
from crew.store.fact_log import load_world
from crew.store.runner_lock import find_runner
from crew.system.processes.ownership import MARKER_VARIABLE
from crew.trusted_config import unapproved_project_files
from crew.workplace import Workplace

TERMINAL = "crew-manager"
PATIENCE = 2
"""How often the manager is asked while nothing changes in the tasks."""

LOOK_EVERY_S = 1.0
LOOK_AFRESH_S = 60.0
"""A terminal changes nothing that the manager watches, so terminals are checked once a minute."""


def open_manager(workplace: Workplace, kind: str, *, instructions: str, model: str) -> None:
    """Open the manager's terminal in the repository's root, or find the open one."""
    if hosts_listed(workplace) is not None and find_runner(workplace.lock_file) is None:
        raise Conflict(
            "the manager reaches the hosts of [sandbox] network only while a runner is up",
            hint="start one with `crew run`, or use `crew manager --auto`",
            code="no_runner_for_manager",
        )
    words = _instructions(workplace, kind, instructions)
    order = _order(workplace, kind, words, session=str(uuid.uuid4()), key="manager")
    order = replace(order, allowed=replace(order.allowed, has_terminal=True))
    terminal = TerminalOrder(
        name=TERMINAL,
        script="manager",
        title="manager",
        order=order,
        marker=_marker(workplace),
        model=model,
    )
    if tmux.find_session(Tmux(folder=workplace.folder), TERMINAL) is None:
        _step_begins(workplace, "", kind, model)
    open_terminal(workplace, terminal)
    open_door(workplace)


def close_manager(workplace: Workplace) -> None:
    tmux.close_session(Tmux(folder=workplace.folder), TERMINAL, marker=_marker(workplace))


def _step_begins(workplace: Workplace, manager: str, kind: str, model: str) -> str:
    """Record a step before it starts; the id of the manager. Its cost is unknown until it ends."""
    args = {"manager": manager, "agent_kind": kind, "model": model}
    return str(ask(workplace, Request(verb="manager_asked", args=args)))


def _marker(workplace: Workplace) -> str:
    return f"pane/{workplace.repo_id}/manager"


@dataclass(slots=True, kw_only=True)
class AutoManager:
    """`crew manager --auto`: asks the manager's agent whenever there is something to decide."""

    workplace: Workplace
    kind: str
    instructions: str
    orders: str = ""
    model: str
    say: Callable[[str], None]
    session: str = field(default_factory=lambda: str(uuid.uuid4()))
    steps: int = 0
    _id: str = ""
    _seen: tuple[Point, ...] | None = None
    _asked: int = 0
    _asked_at: float = 0.0

    async def run(self, *, max_steps: int) -> tuple[Point, ...]:
        """Run until no work is open or only a person can decide; returns what is still open."""
        async with hosts_served(self.workplace, lambda one: self.say(f"{one.host}: {one.why}")):
            with serving(self.workplace):
                return await self._run(max_steps)

    async def _run(self, max_steps: int) -> tuple[Point, ...]:
        while True:
            points = self._look()
            plans = bool(self.orders) and self.steps == 0
            move = next_move(points, asked=self._asked, patience=PATIENCE, plans=plans)
            if move in {ManagerMove.FINISHED, ManagerMove.GIVE_UP} or self.steps >= max_steps:
                return points
            if move is ManagerMove.WAIT:
                await asyncio.sleep(LOOK_EVERY_S)
                continue
            outcome = await self._ask(points)
            if outcome.done:
                self._asked = PATIENCE

    def _plan(self) -> str:
        """What a person wants to be planned; only the first prompt has it."""
        is_first = bool(self.orders) and self.steps == 1
        return prompt("manager_plan", orders=self.orders) + "\n" if is_first else ""

    def _look(self) -> tuple[Point, ...]:
        runner = find_runner(self.workplace.lock_file)
        points = board(self._world(), LEADS, runner_up=runner is not None)
        stale = time.monotonic() - self._asked_at > LOOK_AFRESH_S and _has_terminal(points)
        if points != self._seen or stale:
            self._seen, self._asked = points, 0
        return points

    def _world(self) -> World:
        """The world, up to date with the task source; without a runner nothing else reads it."""
        world = load_world(self.workplace.db)
        return apply_all(world, arrivals(self.workplace, world))

    async def _ask(self, points: tuple[Point, ...]) -> StepOutcome:
        self._asked += 1
        self._asked_at = time.monotonic()
        self.steps += 1
        self.say(f"step {self.steps}, to be decided: {sum(p.decidable for p in points)}")
        shown = board_text(points) or "(empty: no task is open)"
        words = prompt("manager_auto", board=shown, orders=self._plan(), done_word="DONE")
        order = _order(
            self.workplace,
            self.kind,
            words,
            session=self.session,
            key=f"manager/{self.session}/{self.steps}",
            resume=self.steps > 1,
        )
        start_step(order.log, agent="manager", step=f"{self.steps}")
        settings = agent_settings(self.workplace, self.kind)
        told = _instructions(self.workplace, self.kind, self.instructions)
        spec = agent_spec(self.workplace, settings, told, model=self.model)
        outcome = await self._counted(adapter_for(spec), order)
        if outcome.error is not None:
            raise CrewError(
                f"the manager failed: {outcome.error.message}",
                hint=f"look at {order.log}; the board is unchanged",
                code="manager_failed",
            )
        self.session = outcome.session or self.session
        return outcome

    async def _counted(self, adapter: Adapter, order: StepOrder) -> StepOutcome:
        """Run a step and record what it used."""
        self._id = _step_begins(self.workplace, self._id, self.kind, self.model)
        watch = Watch(started=lambda _pid: None, doing=self.say)
        outcome = await adapter.run_step(order, watch)
        args = {"manager": self._id, "usage": asdict(outcome.usage)}
        ask(self.workplace, Request(verb="manager_answered", args=args))
        return outcome


def _instructions(workplace: Workplace, kind: str, common: str) -> str:
    return own_words(common, agent_settings(workplace, kind).system_prompt)


def board_text(points: tuple[Point, ...]) -> str:
    return "\n".join(f"{p.task} [{p.state}] {headline(p.title)}: {headline(p.why)}" for p in points)


def _has_terminal(points: tuple[Point, ...]) -> bool:
    return any(point.why.startswith("at the terminal") for point in points)


def _order(
    workplace: Workplace, kind: str, words: str, *, session: str, key: str, resume: bool = False
) -> StepOrder:
    settings = agent_settings(workplace, kind)
    extra = own_words(workplace.settings.agents.manager_prompt, settings.prompt)
    return StepOrder(
        key=f"{workplace.repo_id}/{key}",
        agent="manager",
        kind=kind,
        worktree=workplace.root,
        prompt=f"{words}\n{extra}" if extra else words,
        session=session,
        resume=resume,
        log=workplace.logs / "manager.log",
        timeout_s=workplace.settings.run.step_timeout_s,
        idle_timeout_s=workplace.settings.run.idle_timeout_s,
        env={
            "CREW_ROLE": "manager",
            "CREW_REPO": str(workplace.root),
            "CREW_GIT_DIR": str(workplace.repo.common_dir),
            DOOR_VARIABLE: str(door_of(workplace)),
            MARKER_VARIABLE: f"pane/{workplace.repo_id}/manager/{os.getpid()}",
        },
        looks_only=True,
        trusts_project=not unapproved_project_files(
            workplace.root, workplace.root, settings.adapter
        ),
        allowed=for_manager(workplace, settings),
    )
