"""Quests of a simulated crew: roles that plan, signal, ask and fail; people who answer."""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from crew.config.workflow_files import BUILT_IN, load_workflow, read_workflow
from crew.domain.kernel.fact import Fact
from crew.domain.quests.quest_plan import planners
from crew.domain.requests import Answer
from crew.domain.rows.quest import QuestState
from crew.domain.rows.run import Run
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome
from crew.domain.rows.task_item import QUEST_LABEL, TaskItem
from crew.domain.rows.workflow import Workflow, as_text, from_text
from crew.domain.tasks.task_outcomes import Intake, seen
from crew.domain.world import World
from crew.runner.engine import Engine
from crew.runner.outside.outside import StepCall
from simulation.outside import CALM, Crashed, SimulatedOutside, State
from simulation.quest_checks import check_at_rest, check_end, check_facts
from simulation.quest_plans import Source, Store, changed_plan, faulty_plans, new_plan

SHARE = 0.05
"""How many histories have quests; the others are as they were without them."""

LEAN = {
    "deepest": 1,
    "roles": {
        "thinker": {},
        "maker": {"retries": 1, "session": "quest"},
        "mender": {"agent": "other"},
    },
    "stages": [
        {"name": "think", "role": "thinker", "plans": True, "complete": "walk"},
        {"name": "walk", "steps": True, "complete": "proof"},
        {"name": "proof", "gate": True, "green": "look", "red": "mend", "limit": 3},
        {"name": "look", "review": ["mender"], "pass": "done", "fail": "mend", "limit": 4},
        {"name": "mend", "role": "mender", "takes_back": True, "complete": "proof"},
    ],
    "step_stages": [
        {"name": "make", "role": "maker", "takes_back": True, "complete": "ward"},
        {"name": "ward", "gate": True, "green": "done", "red": "make", "limit": 2},
    ],
}
"""Another workflow than the built-in one: gates and reviews of the whole, hardly any retries.

Its maker keeps a session for the quest.
"""

BARE = {
    "roles": {"thinker": {}, "maker": {}},
    "stages": [
        {"name": "think", "role": "thinker", "plans": True, "complete": "walk"},
        {"name": "walk", "steps": True, "complete": "done"},
    ],
    "step_stages": [{"name": "make", "role": "maker", "complete": "done"}],
}
"""As little as there can be: nothing is looked at but by the merge queue."""

OWN = {"lean": LEAN, "bare": BARE}

SIGNALS: Mapping[str, Mapping[str, Any]] = {
    "complete": {"summary": "all of it"},
    "partially-complete": {"progress": "half", "continuationPoint": "the rest"},
    "needs-user-input": {"question": "which one?", "context": "two are there"},
    "needs-role-followup": {"reason": "not mine"},
}
WRONG = (
    {"signal": "complete"},
    {"signal": "finished", "summary": "s"},
    {"signal": "needs-role-followup", "role": "nobody", "reason": "w"},
    {"signal": "needs-role-followup", "reason": "w"},
)

Asking = Callable[..., Answer | None]


@cache
def _workflow(name: str) -> Workflow:
    if name in OWN:
        return read_workflow(name, OWN[name])
    return load_workflow(Path(BUILT_IN) / f"{name}.toml")


@dataclass(slots=True)
class Quests:
    """Chance of their own: a history without them is the same one as before there were any."""

    state: State
    chance: random.Random
    ask: Asking
    engine: Engine | None = None
    store: Store = field(default_factory=Store)
    roots: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def items(self, items: list[TaskItem]) -> list[TaskItem]:
        """Few tasks beside the requests."""
        kept = [replace(item, deps=()) for item in items[: self.chance.choice([0, 1, 3])]]
        for _ in range(self.chance.choice([1, 1, 2])):
            root = str(len(kept) + 1)
            kept.append(TaskItem(id=root, title=f"request {root}", labels=(QUEST_LABEL,)))
            self.roots[root] = self._wanted()
        self.store.items = {item.id: item for item in kept}
        return kept

    def _wanted(self) -> Mapping[str, Any]:
        workflow = _workflow(
            self.chance.choice(["quest", "quest", "quest", "lean", "lean", "bare"])
        )
        slots = self.chance.choice([1, 2, 3])
        return {"workflow": workflow.name, "definition": as_text(workflow), "slots": slots}

    def trouble_s(self) -> float:
        """How long things go wrong: many roles act one after the other."""
        return self.chance.choice([200.0, 600.0, 1500.0])

    def source(self, maybe_die: Callable[[], None]) -> Source:
        return Source(self.store, maybe_die)

    def begin(self, engine: Engine) -> None:
        """Whatever the crew does not know yet is told it, at the start of every life."""
        self.engine = engine
        self.store.status = self.state.source
        self._scan(engine)
        for root, wanted in self.roots.items():
            if root not in engine.world.quests and not engine.outside.dead:
                self.ask(engine, "quest_new", task=root, **wanted)

    def _scan(self, engine: Engine) -> None:
        """What the runner does every second: see what is in the source."""
        intake = Intake(target="main", at=engine.now())
        try:
            engine.record(seen(engine.world, self.store.all(), intake))
        except Crashed:
            engine.outside.dead = True
            engine.changed.set()

    # What roles do

    async def act(self, outside: SimulatedOutside, call: StepCall) -> StepOutcome:
        """A turn of a role, from its prompt to its last word."""
        await self._take_time(outside, call)
        if self.state.faults is CALM:
            return self._do_well(outside, call)
        if (failed := await self._fail(outside, call)) is not None:
            return failed
        for share, deed in ((0.15, self._signal_wrongly), (0.1, self._signal_later)):
            if self.chance.random() < share:
                deed(call)
        self._plan(call)
        if self.chance.random() < 0.8:
            outside._commit_something(call)
        outside._maybe_die()
        return await self._signal_and_end(outside, call)

    async def _take_time(self, outside: SimulatedOutside, call: StepCall) -> None:
        try:
            await outside._effect(20.0)
        except Crashed:
            if self.chance.random() < 0.5:
                outside._commit_something(call)  # its last breath, after the runner died
            raise

    def _do_well(self, outside: SimulatedOutside, call: StepCall) -> StepOutcome:
        if self._plans(call) and not self._quest(call).plan:
            assert self._hand_in(call, new_plan(self.chance)) or outside.dead
        outside._commit_something(call)
        done = self.chance.random() < 0.3  # DONE alone on a line says as much as `complete`
        if not done:
            self._signal(call, "complete")
        return StepOutcome(session=call.run.session, done=done)

    async def _fail(self, outside: SimulatedOutside, call: StepCall) -> StepOutcome | None:
        faults = self.state.faults
        if outside._chance(faults.lost_worktree):
            self.state.repo.worktrees.pop(call.task.id, None)
        if outside._chance(faults.hang):
            await asyncio.sleep(1800)
            return _error(call, ErrorKind.TIMEOUT)
        if outside._chance(faults.step_error):
            outside._commit_something(call)
            kinds = [ErrorKind.CRASHED, ErrorKind.RATE_LIMIT, ErrorKind.SESSION_UNKNOWN]
            return _error(call, self.chance.choice(kinds))
        if outside._chance(faults.lazy):
            return StepOutcome(session=call.run.session, done=outside._chance(0.3))
        return None

    def _plan(self, call: StepCall) -> None:
        """A planner hands in a plan, sometimes a wrong one first, sometimes another one after."""
        if not self._plans(call) or self.chance.random() < 0.1:
            return
        quest = self._quest(call)
        plan = changed_plan(self.chance, quest) if quest.plan else new_plan(self.chance)
        if self.chance.random() < 0.3:
            wrong = self.chance.choice(faulty_plans(plan))
            assert self._hand_in(call, wrong) is None, wrong
            assert self._quest(call) == quest, "a plan with a fault changed something"
        taken = self._hand_in(call, plan)
        assert taken is not None or self.engine.outside.dead, plan
        if self.chance.random() < 0.1:
            self._hand_in(call, plan)

    def _hand_in(self, call: StepCall, steps: object) -> Answer | None:
        before = self._is_ended(call)
        taken = self.ask(self.engine, "plan_steps", **_step(call), steps=steps)
        assert self._is_ended(call) == before, "a plan ended the step that handed it in"
        return taken

    def _is_ended(self, call: StepCall) -> bool:
        agent = self.engine.world.agents.get(call.run.agent or "")
        return agent is None or agent.killing or agent.run != call.run.id

    def _plans(self, call: StepCall) -> bool:
        return call.run.role in planners(self.engine.world, self._quest(call))

    def _quest(self, call: StepCall) -> Any:
        world = self.engine.world
        return world.quests[world.positions[call.task.id].quest]

    def _signal_wrongly(self, call: StepCall) -> None:
        """What nobody may say, what this role may not say, and asking whom it may not ask."""
        world = self.engine.world
        role = call.role
        forbidden = [{"signal": s, **SIGNALS[s]} for s in SIGNALS if s not in role.signals]
        asked = [{**WRONG[2], "role": name} for name in self._refused_roles(call.run)]
        wrong = self.chance.choice([*WRONG, *forbidden, *asked])
        assert self.ask(self.engine, "signal", **_step(call), **wrong) is None, wrong
        assert self.engine.world == world, "a wrong signal changed something"

    def _refused_roles(self, run: Run) -> set[str]:
        """Whom nobody may ask now: oneself, whoever waits, and everybody in a deep chain."""
        world = self.engine.world
        base = world.positions[run.task]
        position, waiting = world.positions[base.acting or base.id], []
        while position.asker:
            position = world.positions[position.asker]
            waiting.append(position.role)
        workflow = from_text(world.quests[base.quest].definition)
        is_deep = len(waiting) >= workflow.deepest
        return set(workflow.roles) if is_deep else {run.role, *waiting}

    def _signal_later(self, call: StepCall) -> None:
        kind = self.chance.choice(list(SIGNALS))
        loop = asyncio.get_running_loop()
        loop.call_later(self.chance.uniform(0, 200), self._signal, call, kind)

    def _signal(self, call: StepCall, kind: str) -> None:
        """Counts exactly if the role may say it and it is the first of the step under way."""
        engine = self.engine
        if engine.outside.dead:
            return
        run = engine.world.runs[call.run.id]
        counts = run.stepping and run.attempt == call.run.attempt and not run.signal
        told, allowed = self._told(call, kind)
        taken = self.ask(engine, "signal", **_step(call), **told)
        assert (taken is not None) == (counts and allowed) or engine.outside.dead, told

    def _told(self, call: StepCall, kind: str) -> tuple[dict[str, Any], bool]:
        told = {"signal": kind, **SIGNALS[kind]}
        if kind != "needs-role-followup":
            return told, kind in call.role.signals
        workflow = from_text(self._quest(call).definition)
        told["role"] = self.chance.choice([*(call.role.followups or ()), *workflow.roles])
        told["resume"] = self.chance.random() < 0.6
        is_refused = told["role"] in self._refused_roles(call.run)
        return told, kind in call.role.signals and not is_refused

    async def _signal_and_end(self, outside: SimulatedOutside, call: StepCall) -> StepOutcome:
        for _ in range(self.chance.choice([1, 1, 2])):
            weights = [6, 1, 1, 3]
            self._signal(call, self.chance.choices(list(SIGNALS), weights)[0])
        if not self.engine.world.runs[call.run.id].signal:  # it was refused, and has read why
            self._signal(call, "complete")
        outside._maybe_die()
        end = self.chance.random()
        if end < 0.15:
            await asyncio.sleep(self.chance.uniform(0, 100))  # it does not end its turn
        outside._maybe_die()
        if end > 0.85:
            return _error(call, self.chance.choice([ErrorKind.CRASHED, ErrorKind.RATE_LIMIT]))
        return StepOutcome(session=call.run.session, done=self.chance.random() < 0.1)

    # What people do

    async def live(self, engine: Engine) -> None:
        """They answer sooner or later, and hardly ever give a quest up or remove a step's file.

        Now and then they look at another branch for a while.
        """
        while True:
            await asyncio.sleep(self.chance.uniform(1, 40))
            if self.chance.random() < (0.3 if self.store.away else 0.03):
                self.store.switch_back() if self.store.away else self.store.switch_branch()
            self._scan(engine)
            if self.chance.random() < 0.5:
                self._answer(engine, share=0.5)
            elif self.chance.random() < 0.02:
                self.ask(engine, "quest_cancel", quest=self.chance.choice(sorted(self.roots)))
            elif self.chance.random() < 0.03:
                self.store.remove(self.chance.choice(sorted(self.store.items)))

    def _answer(self, engine: Engine, *, share: float) -> None:
        for question in list(engine.world.questions.values()):
            if question.is_open and self.chance.random() < share:
                self.ask(engine, "answer", question=question.id, text="yes")

    def finish(self, engine: Engine) -> None:
        """Once the faults are over somebody answers everything and looks at no other branch."""
        self.store.switch_back()
        self._answer(engine, share=1.0)

    # What must be true

    def check(self, world: World, facts: Iterable[Fact]) -> None:
        check_facts(world, facts, self.state.repo)

    def check_at_rest(self, world: World) -> None:
        check_at_rest(world)

    def check_end(self, world: World) -> None:
        check_end(world, self.state.repo)
        assert {quest.state for quest in world.quests.values()} <= set(QuestState)
        assert world.quests.keys() == self.roots.keys(), "a quest was forgotten"


def _step(call: StepCall) -> dict[str, Any]:
    return {"run": call.run.id, "attempt": call.run.attempt}


def _error(call: StepCall, kind: ErrorKind) -> StepOutcome:
    return StepOutcome(
        session=call.run.session, error=StepError(kind=kind, message=f"simulated {kind}")
    )
