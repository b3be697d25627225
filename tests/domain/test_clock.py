"""The clock of a plan keeps each moment that a condition waits for."""

import ast
import math
from pathlib import Path

import pytest

import crew.domain
from crew.domain.clock import Clock, next_at
from crew.domain.commands import CommandKey, CommandKind, Step
from crew.domain.commands import TestCandidate as GateOn
from crew.domain.scope import EVERYTHING, Scope
from domain.scenes import holding, waits

DOMAIN = Path(crew.domain.__file__).parent
TIMES = {"now", "not_before"}
PLANNERS = sorted({DOMAIN / "plan.py", *DOMAIN.glob("*/*_plan.py")})


def test_what_has_come_is_not_waited_for_and_of_the_rest_the_first_moment_counts():
    clock = Clock(10.0)
    assert clock.has_come(None, CommandKind.RUN)
    assert clock.has_come(10.0, CommandKind.RUN)
    assert next_at([clock]) == math.inf
    assert not clock.has_come(30.0, CommandKind.RUN)
    assert not clock.has_come(20.0, CommandKind.RUN)
    assert not clock.has_come(25.0, None)
    assert not clock.has_come(math.inf, CommandKind.TURN)
    assert clock.waits == {CommandKind.RUN: 20.0, None: 25.0}
    assert next_at([Clock(0.0), clock]) == 20.0


def test_a_clock_of_some_kinds_keeps_the_moments_of_these_alone():
    clock = Clock(10.0, kinds=frozenset({CommandKind.DELIVER}))
    for kind in (CommandKind.RUN, None, CommandKind.DELIVER):
        assert not clock.has_come(20.0, kind)
    assert clock.waits == {CommandKind.DELIVER: 20.0}


def test_only_time_is_waited_for():
    """What another condition keeps from being done does not come with time."""
    pausing = holding("working", agent_retry_at=60.0)
    assert waits(pausing, 50.0) == {CommandKind.RUN: 60.0}
    for scope in (Scope(takes_work=False), Scope(tasks=("2",)), Scope(channel="room")):
        assert waits(pausing, 50.0, scope=scope) == {}
    assert waits(holding("working", agent_retry_at=60.0, task_cleaning=True), 50.0) == {}


def _names(node):
    return {getattr(one, "id", getattr(one, "attr", "")) for one in ast.walk(node)}


@pytest.mark.parametrize("file", PLANNERS, ids=lambda file: file.stem)
def test_a_planner_compares_no_time_by_itself(file):
    """Such a comparison would be a moment at which the runner does not look again."""
    compared = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Compare)
        and any(name in TIMES or name.endswith("_at") for name in _names(node))
        and not all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
    ]
    assert compared == []


def test_a_scope_of_one_task_takes_others_on():
    alone = Scope(tasks=("1",))
    assert (alone.has_task("1"), alone.has_task("2"), alone.has_channel("room")) == (
        True,
        False,
        False,
    )
    assert alone.with_task("2").tasks == ("1", "2")
    assert EVERYTHING.with_task("2") == EVERYTHING


def test_a_key_reads_as_words_in_the_log():
    assert str(Step(subject="1.1").key) == "run 1.1"
    assert str(GateOn(subject="main", commit="c0").key) == "test main c0"
    assert GateOn(subject="main", commit="c0").key == CommandKey(CommandKind.TEST, "main", "c0")
