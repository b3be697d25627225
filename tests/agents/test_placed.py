"""Where each kind of agent gets its system prompt: nowhere is it lost, and nowhere sent twice."""

from dataclasses import replace

import pytest

from agents.contract import order  # noqa: F401 - a fixture
from crew.agents.adapter import AgentSpec, place_system_prompt, remembers
from crew.domain.kernel.adapter_names import ADAPTERS

IN_PROMPT = ("", "be kind\n\ndo it")
ASIDE = ("be kind", "do it")
NOT_AGAIN = ("", "do it")

TABLE = {
    # adapter: the first step of a session, a later one
    "claude": (ASIDE, ASIDE),
    "codex": (ASIDE, ASIDE),
    "codex-exec": (ASIDE, ASIDE),
    "opencode": (IN_PROMPT, NOT_AGAIN),
    "gemini": (IN_PROMPT, NOT_AGAIN),
    "acp": (IN_PROMPT, NOT_AGAIN),
    "command": (IN_PROMPT, IN_PROMPT),
    "scripted": (IN_PROMPT, NOT_AGAIN),
}


def test_the_table_is_complete():
    assert set(TABLE) == set(ADAPTERS)


@pytest.mark.parametrize("adapter", TABLE)
@pytest.mark.parametrize("resume", [False, True])
def test_the_system_prompt_goes_where_the_program_takes_it(order, adapter, resume):  # noqa: F811
    spec = AgentSpec(name="x", adapter=adapter, system_prompt="be kind\n")
    sent, step = place_system_prompt(spec, replace(order, resume=resume))
    assert (sent.system_prompt.strip(), step.prompt) == TABLE[adapter][resume]


@pytest.mark.parametrize("adapter", TABLE)
def test_without_a_system_prompt_the_prompt_is_all(order, adapter):  # noqa: F811
    assert place_system_prompt(AgentSpec(name="x", adapter=adapter), order)[1] == order


def test_programs_without_sessions_are_known():
    assert [name for name in TABLE if not remembers(name)] == ["command"]
