"""Real Claude Codes talk in a channel, and a person speaks into it while they do."""

import json
from contextlib import contextmanager

import pytest

from agents.running import wait_until
from real_clis.conftest import as_toml, has_queued
from real_clis.scripted_model import Say

pytestmark = pytest.mark.timeout(240)  # several commands and several starts of the agent


@pytest.fixture
def members(crew, model, model_env):
    """Two agents, each with a script of its own."""
    for name in ("pm", "dev"):
        env = {**model_env, "ANTHROPIC_BASE_URL": f"{model.address}/s/{name}"}
        crew.configure(f'[agents.{name}]\ninherit = "claude"\n[agents.{name}.env]\n{as_toml(env)}')
    return crew


def _texts(crew):
    return [one["text"] for one in json.loads(crew("channel", "tail", "room", "--json"))]


def _told(asked):
    return json.dumps(asked.body["messages"])


def _open(crew, *flags):
    members = ("--member", "pm", "--member", "dev", "--timeout", "10m")
    crew("channel", "new", "room", *members, "--topic", "Which colour?", *flags)


def test_two_of_them_hold_a_conversation_of_three_turns_in_their_own_sessions(members, script):
    crew = members
    pm = script(Say("I say blue.\nTURN_COMPLETE"), Say("So be it. TURN_COMPLETE"), name="pm")
    dev = script(Say("Blue is fine."), Say("TURN_COMPLETE"), name="dev")
    _open(crew, "--rounds", "2")
    crew("channel", "run", "room")
    assert _texts(crew) == ["Which colour?", "I say blue.", "Blue is fine.", "So be it."]
    assert len(pm.turns) == len(dev.turns) == 2
    again = _told(pm.turns[1])
    assert again.count("Blue is fine.") == 1
    assert again.count("Which colour?") == 1  # in its session, and not given again
    assert "I say blue." in again
    shown = json.loads(crew("channel", "show", "room", "--json"))
    assert all(one["total_cost_usd"] > 0 for one in shown["members"])


@contextmanager
def _in_the_middle(crew, pm, text):
    """A person speaks while pm uses a tool; then the tool ends."""
    runner = crew.start("channel", "run", "room")
    try:
        wait_until(lambda: len(pm.turns) == 1, limit_s=60)
        crew("channel", "say", "room", text)
        yield
        _, said = runner.communicate(timeout=100)
    finally:
        runner.kill()
        runner.communicate()
    assert runner.returncode == 0, said


def test_a_persons_word_is_injected_into_the_running_turn(members, script, repo, sign):
    crew = members
    pm = script(sign.awaited, Say("Red then."), Say("TURN_COMPLETE"), name="pm")
    script(Say("TURN_COMPLETE"), Say("TURN_COMPLETE"), name="dev")
    _open(crew, "--rounds", "1")
    with _in_the_middle(crew, pm, "take the red one"):
        wait_until(lambda: has_queued(repo / ".crew" / "logs" / "channel-room.pm.log"))
        sign.give()
    assert _texts(crew)[:3] == ["Which colour?", "take the red one", "Red then."]
    assert _told(pm.turns[1]).count("take the red one") == 1
    assert sum("take the red one" in _told(asked) for asked in pm.turns[:1]) == 0


def test_a_person_who_interrupts_stops_the_turn_and_the_agent_goes_on_with_it(
    members, script, sign
):
    crew = members
    pm = script(sign.awaited, Say("Red then."), Say("TURN_COMPLETE"), name="pm")
    script(Say("TURN_COMPLETE"), Say("TURN_COMPLETE"), name="dev")
    _open(crew, "--rounds", "1", "--interrupt", "interrupt")
    with _in_the_middle(crew, pm, "stop, take the red one"):
        wait_until(lambda: len(pm.turns) >= 2, limit_s=60)
    texts = _texts(crew)
    assert texts[:3] == ["Which colour?", "stop, take the red one", "Red then."]
    assert _told(pm.turns[1]).count("stop, take the red one") == 1
    moves = [
        (one["from"], one["to"], one["trigger"])
        for one in json.loads(crew("events", "--json", "--subject", "member:room/pm"))
        if one["event"] == "state_transition"
    ]
    place = moves.index(("active", "waiting", "human_interrupts"))
    assert moves[place + 1] == ("waiting", "active", "wait_resolved")
