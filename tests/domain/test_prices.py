"""Costs from tokens and prices."""

import pytest

from crew.domain.kernel.prices import ANY_MODEL, Price, TokenCounts, cost_of, price_of

SMALL, LARGE = (
    Price(input=1.0, cached_input=0.1, output=2.0),
    Price(input=10.0, cached_input=1.0, output=20.0, most_input=200),
)
PRICES = {"gpt-5": LARGE, "gpt-5-mini": SMALL}

SAME = ("gpt-5", "openai/gpt-5", "gpt-5-2026-01-31", "gpt-5-20260131", "gpt-5-latest")
PREVIEWS = ("gpt-5-preview", "gpt-5-preview-05-06")
OTHERS = ("", "gpt", "gpt-5.1", "gpt-50", "gpt-5-nano", "gpt-5-mini-pro", "GPT-5")


@pytest.mark.parametrize("model", [*SAME, *PREVIEWS])
def test_a_version_of_a_model_has_its_price(model):
    assert price_of(model, PRICES) == LARGE


@pytest.mark.parametrize("model", OTHERS)
def test_the_price_of_another_model_is_unknown(model):
    assert price_of(model, PRICES) is None
    assert cost_of(model, TokenCounts(input=1, cached=0, output=0), PRICES) is None


def test_a_variant_has_its_own_price():
    assert price_of("gpt-5-mini-2026-01-31", PRICES) == SMALL


def test_an_agents_own_price_wins():
    assert price_of("anything", {**PRICES, ANY_MODEL: SMALL}) == SMALL


def test_cached_input_is_part_of_the_input():
    tokens = TokenCounts(input=100, cached=40, output=10)
    assert cost_of("gpt-5-mini", tokens, PRICES) == pytest.approx((60 + 4 + 20) / 1e6)
    beyond = TokenCounts(input=100, cached=400, output=0)
    assert cost_of("gpt-5-mini", beyond, PRICES) == pytest.approx(10 / 1e6)


def test_above_the_input_that_a_price_holds_for_the_cost_is_unknown():
    assert cost_of("gpt-5", TokenCounts(input=200, cached=0, output=0), PRICES) == pytest.approx(
        0.002
    )
    assert cost_of("gpt-5", TokenCounts(input=201, cached=0, output=0), PRICES) is None
