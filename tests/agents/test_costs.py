"""CLIs that report tokens and no cost: crew computes it, or calls it unknown."""

import json
from dataclasses import replace

import pytest

from crew.agents.codex.codex_exec import ExecTurn
from crew.agents.codex.codex_turn import AppTurn
from crew.agents.event_stream import AgentMessages
from crew.agents.gemini.gemini_events import GeminiRun
from crew.agents.session_memory import SessionMemory
from crew.config.price_list import listed_prices
from crew.domain.kernel.prices import ANY_MODEL, Price
from crew.domain.rows.step import Usage

MILLION = 1_000_000
OWN = {ANY_MODEL: Price(input=1.0, cached_input=0.5, output=2.0)}


def messages():
    return AgentMessages("DONE", lambda _words: None)


def codex_exec(model, prices):
    turn = ExecTurn(messages=messages(), model=model, prices=prices)
    usage = {"input_tokens": MILLION, "cached_input_tokens": 400_000, "output_tokens": 100_000}
    turn.take(json.dumps({"type": "turn.completed", "usage": usage}).encode() + b"\n")
    return turn.total


def codex_app(model, prices):
    turn = AppTurn(messages=messages(), prices=prices)
    turn.read_model({"thread": {"id": "x"}, "model": model})
    turn.read_model({"turn": {"id": "y"}})
    total = {"inputTokens": MILLION, "cachedInputTokens": 400_000, "outputTokens": 100_000}
    turn.read("thread/tokenUsage/updated", {"tokenUsage": {"total": total}})
    return turn.total


def gemini(model, prices):
    run = GeminiRun(messages=messages(), prices=prices)
    counts = {"input_tokens": MILLION, "cached": 400_000, "output_tokens": 100_000}
    result = {"type": "result", "status": "success", "stats": {**counts, "models": {model: counts}}}
    run.take(json.dumps(result).encode() + b"\n")
    return run.usage


@pytest.mark.parametrize("cli", [codex_exec, codex_app, gemini])
def test_the_cost_is_that_of_the_price_list(cli):
    assert cli("gpt-5-codex", listed_prices()) == Usage(
        input_tokens=MILLION,
        output_tokens=100_000,
        cost_usd=pytest.approx(0.6 * 1.25 + 0.4 * 0.125 + 0.1 * 10),
    )


@pytest.mark.parametrize("cli", [codex_exec, codex_app, gemini])
def test_the_price_of_the_agent_holds_for_all_models(cli):
    assert cli("my-own", OWN).cost_usd == pytest.approx(0.6 + 0.4 * 0.5 + 0.2)


@pytest.mark.parametrize("cli", [codex_exec, codex_app, gemini])
def test_the_cost_of_an_unlisted_model_is_unknown(cli):
    assert cli("gpt-99", listed_prices()).cost_usd is None


def test_gemini_adds_the_costs_of_all_its_models():
    run = GeminiRun(messages=messages(), model="gemini-2.5-flash", prices=listed_prices())
    some = {"input_tokens": 100_000, "cached": 0, "output_tokens": 10_000}
    both = {"gemini-2.5-pro": some, "gemini-2.5-flash": some}
    assert run._cost({"models": both}) == pytest.approx(0.125 + 0.1 + 0.03 + 0.025)
    assert run._cost({"models": {**both, "gemini-99": some}}) is None
    assert run._cost(some) == pytest.approx(0.03 + 0.025)


def test_a_step_costs_what_its_thread_cost_since_the_step_before(tmp_path):
    memory = SessionMemory(cli="codex", folder=tmp_path)
    first = Usage(input_tokens=10, output_tokens=1, cost_usd=0.5)
    assert memory.used_since("t", first).cost_usd == 0.5
    later = Usage(input_tokens=30, output_tokens=2, cost_usd=0.8)
    assert memory.used_since("t", later).cost_usd == pytest.approx(0.3)


def test_after_steps_of_unknown_cost_only_the_next_ones_are_known(tmp_path):
    memory = SessionMemory(cli="codex", folder=tmp_path)
    total = Usage(input_tokens=10, output_tokens=1, cost_usd=None)
    assert memory.used_since("t", total).cost_usd is None
    assert memory.used_since("t", replace(total, input_tokens=20, cost_usd=2.0)).cost_usd is None
    assert memory.used_since("t", replace(total, input_tokens=30, cost_usd=3.0)).cost_usd == 1.0
