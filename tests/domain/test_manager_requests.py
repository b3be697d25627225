"""The steps of a manager: their cost is the sum of what they reported, or unknown."""

from dataclasses import asdict

import pytest

from crew.domain.kernel.errors import NotFound
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.agent import MANAGER
from crew.domain.rows.step import UNREPORTED, Usage
from crew.domain.world import World, apply_all
from domain.contract import MachineContract
from domain.scenes import RULES

STEP = Usage(input_tokens=30, output_tokens=2, cost_usd=0.5)


class TestManagerMachine(MachineContract):
    machine = MANAGER
    states = ("idle", "asked")
    seed = (("idle", "asked", "asked"), ("asked", "idle", "answered"))
    final = ()
    rests = ("idle",)


def told(world, verb, **args):
    request = Request(verb=verb, args=args)
    return apply_all(world, answer(world, request, rules=RULES, at=1.0).facts)


def asked(world, manager=""):
    return told(world, "manager_asked", manager=manager, agent_kind="boss", model="large")


def played(*steps):
    """The manager after these steps; the last one may have no end."""
    world = asked(World())
    for number, usage in enumerate(steps):
        if number:
            world = asked(world, "m1")
        if usage:
            world = told(world, "manager_answered", manager="m1", usage=asdict(usage))
    return world.managers["m1"]


def test_the_steps_of_a_manager_add_up():
    one = played(STEP, STEP)
    assert (one.agent_kind, one.model, one.steps) == ("boss", "large", 2)
    assert (one.input_tokens, one.output_tokens, one.cost_usd) == (60, 4, 1.0)


@pytest.mark.parametrize("steps", [(STEP, None), (STEP, UNREPORTED), (UNREPORTED, STEP), (None,)])
def test_the_cost_is_unknown_if_one_step_reported_none(steps):
    assert played(*steps).cost_usd is None


def test_each_manager_has_an_id_of_its_own():
    world = asked(asked(World()))
    assert list(world.managers) == ["m1", "m2"]


def test_a_manager_that_never_began_cannot_report():
    with pytest.raises(NotFound):
        told(World(), "manager_answered", manager="m1", usage=asdict(STEP))
