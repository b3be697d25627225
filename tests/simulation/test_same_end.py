"""A script of signals, questions, messages and limits: wherever the runner dies, it ends alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from crew.domain.rows.step import ErrorKind, StepError, StepOutcome
from crew.domain.rows.task_item import TaskItem
from crew.domain.rules import Rules
from crew.runner.outside.outside import StepCall
from simulation.history import History
from simulation.outside import SimulatedOutside
from simulation.talking import LEGAL, PROVIDERS, Talk
from simulation.virtual_loop import VirtualLoop

pytestmark = pytest.mark.timeout(120)

COMPLETE, PARTLY, ASK = LEGAL
SCRIPT = {
    "1": ("ask", "work"),
    "2": ("partly", "read", "complete"),
    "3": ("limit", "ask", "complete"),
}
"""What the agent of each task does, step by step."""

SAID = {"ask": ASK, "partly": PARTLY, "complete": COMPLETE}


@dataclass(slots=True)
class Script(Talk):
    """Agents do what is written, again and again until that step has ended."""

    limited: set[str] = field(default_factory=set)

    async def speak(self, outside: SimulatedOutside, call: StepCall) -> StepOutcome | None:
        self.receive([message.id for message in call.messages])
        act = SCRIPT[call.task.id][self._steps_before(call)]
        await outside._effect(1.0)
        if act == "limit":
            return self._limit(call)
        if act != "ask":
            outside._commit_something(call)
            outside._maybe_die()
        if act in SAID:
            self._signal(call, SAID[act])
            outside._maybe_die()
        return StepOutcome(session=call.run.session, done=act == "work")

    def _steps_before(self, call: StepCall) -> int:
        """A limit is no step, so what comes after it is counted from there."""
        is_past = call.task.id in self.limited
        return call.run.step - 1 + (1 if is_past else 0)

    def _limit(self, call: StepCall) -> StepOutcome:
        self.limited.add(call.task.id)
        reset_at = self.engine.now() + 100.0
        error = StepError(kind=ErrorKind.RATE_LIMIT, message="a limit", reset_at=reset_at)
        return StepOutcome(session=call.run.session, error=error)


def told(loop: VirtualLoop, *, crash_at: int = 0) -> tuple[Mapping[str, object], int]:
    """How the script ends, and after how many effects."""
    history = History(seed=1, loop=loop)
    history.state.shared_files = 50
    history.terminals = None
    history.rules = Rules(providers=PROVIDERS)
    history.items = [TaskItem(id=task, title=task) for task in SCRIPT]
    history.state.source = dict.fromkeys(SCRIPT, "todo")
    script = Script(history.state, history.state.rng, history._ask)
    history.talk = history.state.talk = script
    engine = history._engine(SimulatedOutside(history.state))
    history._take_in(engine)
    for task in SCRIPT:
        history._ask(engine, "message", task=task, sender="ann", text="mind the tests")
    history.state.effects, history.state.crash_at = 0, crash_at
    history.come_to_an_end()
    return _end(history), history.state.effects


def _end(history: History) -> Mapping[str, object]:
    """Not how many calls it took: one that died before its session was known is made anew."""
    world, repo = history.ledger.world, history.state.repo
    files = {name: sorted(lines) for name, lines in repo.commits[repo.target].files.items()}
    return {
        "tasks": {task.id: task.state for task in world.tasks.values()},
        "runs": sorted(
            (r.id, r.state, r.round, r.history, r.question) for r in world.runs.values()
        ),
        "questions": sorted(
            (q.task, q.question, q.state, q.answer) for q in world.questions.values()
        ),
        "messages": sorted((m.task, m.state) for m in world.messages.values()),
        "files": files,
    }


@pytest.fixture(scope="module")
def untroubled():
    loop = VirtualLoop()
    try:
        return told(loop)
    finally:
        loop.close()


def test_the_script_comes_to_its_end(untroubled):
    end, effects = untroubled
    assert set(end["tasks"].values()) == {"merged"}
    assert [(task, state) for task, _, state, _ in end["questions"]] == [
        ("1", "answered"),
        ("3", "answered"),
    ]
    assert {state for _, state in end["messages"]} == {"read"}
    assert effects > 100


PARTS = 4


@pytest.mark.timeout(120)
@pytest.mark.parametrize("part", range(PARTS))
def test_wherever_the_runner_dies_the_end_is_the_same(untroubled, part):
    end, effects = untroubled
    loop = VirtualLoop()
    try:
        for crash_at in range(1 + part, effects + 1, PARTS):
            assert told(loop, crash_at=crash_at)[0] == end, f"killed at effect {crash_at}"
    finally:
        loop.close()
