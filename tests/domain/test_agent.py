"""The agent's machine and its row."""

import pytest

from crew.domain.rows.agent import AGENT, SYMBOLS, Agent, AgentState
from domain.contract import MachineContract


class TestAgentMachine(MachineContract):
    """Seed 000: "State Transitions", and the valid states of `kill`."""

    machine = AGENT
    states = ("idle", "ready", "working", "done", "stuck")
    seed = (
        ("idle", "ready", "assigned"),
        ("ready", "working", "step_started"),
        ("working", "working", "step_started"),
        ("working", "done", "done"),
        ("working", "done", "step_limit"),
        ("done", "working", "sent_back"),
        ("done", "idle", "released"),
        ("working", "stuck", "errors"),
        ("working", "idle", "killed"),
        ("stuck", "idle", "killed"),
    )
    rests = ("idle",)
    final = ()


def test_the_symbols_are_those_of_the_seed():
    symbols = {"idle": "○", "ready": "◐", "working": "●", "done": "✓", "stuck": "!"}
    assert symbols == SYMBOLS


@pytest.mark.parametrize("state", AgentState)
def test_only_an_idle_agent_is_free(state):
    assert Agent(id="A", agent_kind="claude", state=state).is_free == (state == "idle")


def test_an_agent_that_is_being_killed_is_not_free():
    assert not Agent(id="A", agent_kind="claude", killing=True).is_free


@pytest.mark.parametrize("state", [s for s in AgentState if s != AgentState.IDLE])
def test_kill_brings_an_agent_back_from_every_state_in_which_it_holds_a_task(state):
    assert ("idle", "killed") in {(move.target, move.trigger) for move in AGENT.moves_from(state)}
