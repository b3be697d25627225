"""Tests of the repairs of a start: their order, and that a start runs all of them."""

import pytest

from crew.runner import startup
from crew.runner.run_crew import RunnerOptions, run_crew
from crew.runner.startup import AFTER_A_KILL, BEFORE_PLAN, BEFORE_ROWS, Repair
from crew.runner.writer_lock import holding_the_lock

LISTS = {"AFTER_A_KILL": AFTER_A_KILL, "BEFORE_ROWS": BEFORE_ROWS, "BEFORE_PLAN": BEFORE_PLAN}


@pytest.fixture
def workplace(make_scene):
    return make_scene().make()


@pytest.fixture
def ran(monkeypatch):
    """The repairs that run, as the name of their list and their number in it."""
    seen = []

    def noted(name, number, repair):
        def act(subject):
            seen.append((name, number))
            return repair.act(subject)

        return Repair(act=act, why=repair.why, in_thread=repair.in_thread)

    for name, repairs in LISTS.items():
        monkeypatch.setattr(
            startup, name, tuple(noted(name, n, one) for n, one in enumerate(repairs))
        )
    return seen


def everything():
    return [(name, number) for name, repairs in LISTS.items() for number in range(len(repairs))]


def test_a_runner_makes_every_repair_in_the_order_of_the_lists(workplace, ran):
    run_crew(workplace, lambda _runner: None, options=RunnerOptions(drain=True))
    assert ran == everything()


def test_a_short_command_repairs_only_what_a_killed_writer_left(workplace, ran):
    with holding_the_lock(workplace):
        pass
    ran.clear()
    with holding_the_lock(workplace):
        pass
    assert ran == []
    workplace.lock_file.write_text('{"pid": 1, "role": "command"}')
    with holding_the_lock(workplace):
        pass
    assert ran == [place for place in everything() if place[0] == "AFTER_A_KILL"]


def test_each_repair_says_why():
    assert all(repair.why for repairs in LISTS.values() for repair in repairs)
