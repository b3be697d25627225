"""What agents and people of a simulated crew say: signals, questions, answers, messages, limits."""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from crew.agents.adapter import Say
from crew.domain.kernel.fact import Fact
from crew.domain.requests import Answer
from crew.domain.rows.message import MessageState
from crew.domain.rows.question import About, Question
from crew.domain.rows.run import Run
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome
from crew.domain.rows.task_item import TaskItem
from crew.domain.rules import Rules
from crew.domain.runs.questions import permission_to
from crew.domain.world import World
from crew.runner.engine import Engine
from crew.runner.outside.outside import StepCall
from simulation.outside import CALM, SimulatedOutside, State

SHARE = 0.4
"""How many histories have people and agents who talk; the others are as they were without them."""

PROVIDERS = {"scripted": "north", "other": "south"}
LEGAL = (
    {"signal": "complete", "summary": "all of it"},
    {"signal": "partially-complete", "progress": "half", "continuationPoint": "the rest"},
    {"signal": "needs-user-input", "question": "which one?", "context": "two are there"},
)
ILLEGAL = (
    {"signal": "complete"},
    {"signal": "finished", "summary": "s"},
    {"signal": ["complete"], "summary": "s"},
    {"signal": "complete", "summary": 7},
    {"signal": "needs-user-input", "question": " "},
    {"signal": "needs-role-followup", "role": "r", "reason": "w"},
)

Asking = Callable[..., Answer | None]


@dataclass(slots=True)
class Talk:
    """`got` is what agents have really seen, `read` what is never to be seen again."""

    state: State
    chance: random.Random
    ask: Asking
    engine: Engine | None = None
    got: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    paused_until: dict[str, float] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)

    def rules(self, rules: Rules) -> Rules:
        return replace(rules, providers=PROVIDERS)

    def items(self, items: Iterable[TaskItem]) -> list[TaskItem]:
        kinds = (None, None, "other")
        return [replace(item, agent=self.chance.choice(kinds)) for item in items]

    # What agents say

    async def speak(self, outside: SimulatedOutside, call: StepCall) -> StepOutcome | None:
        """How the step ends because of what is said in it; None when the agent just works."""
        self.receive([message.id for message in call.messages])
        self.sessions.setdefault(call.run.session, call.task.id)
        assert self.sessions[call.run.session] == call.task.id, "a session of another task"
        if self.state.faults is CALM:
            return None
        await self._hear(call)
        for share, deed in ((0.1, self._signal_later), (0.1, self._signal_wrongly)):
            if self.chance.random() < share:
                deed(call)
        if self.chance.random() < 0.1 and not await self._may_go_on(call):
            return _failed(call, ErrorKind.TIMEOUT)
        if self.chance.random() < 0.1:
            return self._limited(call)
        if self.chance.random() < 0.35:
            return await self._signal_and_end(outside, call)
        return None

    def receive(self, messages: Iterable[str]) -> None:
        for message in messages:
            assert message not in self.read, f"message {message} was given after it was read"
            self.got.add(message)

    async def _hear(self, call: StepCall) -> None:
        """What came in during the step: passed on by crew, or fetched."""
        if self.chance.random() < 0.5:
            await asyncio.sleep(self.chance.uniform(0, 20))
            while not call.controls._queue.empty():
                word = await call.controls.next()
                if isinstance(word, Say):
                    self.got.add(word.message)
                    call.heard(word.message)
        if self.chance.random() < 0.3:
            found = self.ask(self.engine, "fetch_messages", **_step(call))
            self.receive(one["id"] for one in (found.reply if found else ()))

    def _signal_later(self, call: StepCall) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(self.chance.uniform(0, 200), self._signal, call, self._legal(), True)

    def _signal_wrongly(self, call: StepCall) -> None:
        before = self.engine.world.runs[call.run.id]
        wrong = self.chance.choice(ILLEGAL)
        assert self.ask(self.engine, "signal", **_step(call), **wrong) is None, wrong
        assert self.engine.world.runs[call.run.id] == before, "a wrong signal changed something"

    def _legal(self) -> Mapping[str, Any]:
        return self.chance.choice(LEGAL)

    def _signal(self, call: StepCall, told: Mapping[str, Any], late: bool = False) -> None:
        """Counts exactly if it is the first one of the very step that is under way."""
        engine = self.engine
        if engine is None or engine.outside.dead:
            return
        run = engine.world.runs[call.run.id]
        counts = run.stepping and run.attempt == call.run.attempt and not run.signal
        taken = self.ask(engine, "signal", **_step(call), **told)
        assert late or counts or run.signal, "a step could not speak"
        assert (taken is not None) == counts or engine.outside.dead, "a late or second signal"

    async def _signal_and_end(self, outside: SimulatedOutside, call: StepCall) -> StepOutcome:
        told = self._legal()
        if self.chance.random() < 0.8:
            outside._commit_something(call)
        for _ in range(self.chance.choice([1, 1, 2])):
            self._signal(call, told)
        outside._maybe_die()
        end = self.chance.random()
        if end < 0.3:
            await asyncio.sleep(self.chance.uniform(0, 100))  # it does not end its turn
        outside._maybe_die()
        if end > 0.7:
            return _failed(call, self.chance.choice([ErrorKind.CRASHED, ErrorKind.RATE_LIMIT]))
        return StepOutcome(session=call.run.session)

    async def _may_go_on(self, call: StepCall) -> bool:
        try:
            async with asyncio.timeout(900):  # crew ends the step before
                await call.asked(permission_to("rm", "everything"))
        except TimeoutError:
            return False
        return True

    def _limited(self, call: StepCall) -> StepOutcome:
        reset_at = self.engine.now() + self.chance.choice([-5.0, 30.0, 600.0])
        error = StepError(kind=ErrorKind.RATE_LIMIT, message="a limit", reset_at=reset_at)
        return StepOutcome(session=call.run.session, error=error)

    # What people say

    async def live(self, engine: Engine) -> None:
        while True:
            await asyncio.sleep(self.chance.uniform(1, 60))
            if self.chance.random() < 0.4:
                task = self.chance.choice(sorted(engine.world.tasks))
                self.ask(engine, "message", task=task, sender="ann", text="mind the tests")
            elif questions := list(engine.world.questions.values()):
                self._answer(engine, self.chance.choice(questions))

    def _answer(self, engine: Engine, question: Question) -> None:
        """Also one that is answered already, which must change nothing."""
        is_open = question.is_open and engine.world.runs[question.run].is_live
        taken = self.ask(engine, "answer", question=question.id, text="yes")
        assert (taken is not None) == is_open or engine.outside.dead, "an answer that came too late"

    def finish(self, engine: Engine) -> None:
        """Once the faults are over somebody answers everything."""
        for question in list(engine.world.questions.values()):
            if question.is_open:
                self._answer(engine, question)

    # What must be true

    def check(self, world: World, facts: Iterable[Fact]) -> None:
        for fact in facts:
            if fact.kind == "message" and fact.trigger == "read":
                assert fact.subject in self.got, f"message {fact.subject} was lost"
                self.read.add(fact.subject)
            elif fact.kind == "provider":
                self._note_pause(fact)
            elif fact.kind == "run" and fact.trigger == "step_started":
                provider = PROVIDERS[world.runs[fact.subject].agent_kind]
                until = self.paused_until.get(provider, 0.0)
                assert fact.at >= until, f"{provider} was called before its time"

    def check_at_rest(self, world: World) -> None:
        """What holds once everything that follows at once has followed."""
        for question in world.questions.values():
            if question.is_open:
                _check_open(world, world.runs[question.run], question)
        for run in world.runs.values():
            if run.question and run.is_live:
                is_open = world.questions[run.question].is_open
                assert is_open or run.stepping, "a run waits for what nobody asks"

    def _note_pause(self, fact: Fact) -> None:
        if fact.trigger == "rate_limited":
            self.paused_until[fact.subject] = fact.changes["next_at"]
        elif fact.trigger == "served":
            self.paused_until.pop(fact.subject, None)

    def check_end(self, world: World) -> None:
        assert not any(q.is_open for q in world.questions.values()), "a question is left open"
        states = {m.id for m in world.messages.values() if m.state == MessageState.READ}
        assert states == self.read, "a message was read without a fact"


def _check_open(world: World, run: Run, question: Question) -> None:
    """Whoever needs a word from a person waits for it, and for nothing else."""
    if question.about == About.CONFLICT:
        assert run.question == question.id, "a conflict is asked about that nobody has"
        return
    if question.about == About.DIALOG:
        assert world.terminals[run.id].dialog == question.id, "no terminal shows this dialog"
        return
    assert run.is_live, "a question of a run that is over"
    if question.about == About.PERMISSION:
        waits = run.question == question.id
        assert run.stepping or waits, "leave is asked for, and nobody is there to use it"
        return
    assert run.question == question.id, "a question that no run waits for"
    assert run.stepping or run.agent is None, "an agent is held by a question"


def _step(call: StepCall) -> dict[str, Any]:
    return {"run": call.run.id, "attempt": call.run.attempt}


def _failed(call: StepCall, kind: ErrorKind) -> StepOutcome:
    return StepOutcome(
        session=call.run.session, error=StepError(kind=kind, message=f"simulated {kind}")
    )
