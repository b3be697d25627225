"""Computes the cost of tokens, for CLIs that report their tokens and no cost."""

import re
from collections.abc import Mapping

from crew.domain.kernel.frozen import frozen

ANY_MODEL = ""
"""The name of a price that applies to all models of an agent."""

_VERSION = re.compile(r"(-\d{4}-?\d{2}-?\d{2}|-latest|-preview(-[\d-]+)?)?")
_MILLION = 1_000_000


@frozen
class Price:
    """Dollars for a million tokens. Requests with more input than `most_input` cost more."""

    input: float
    cached_input: float
    output: float
    most_input: int = 0  # 0: no limit


@frozen
class TokenCounts:
    """The tokens of one model. The input includes what the provider had cached."""

    input: int
    cached: int
    output: int


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of a model, also under the name of one of its versions; None if it is unknown.

    Another variant, such as a smaller one, has another price.
    """
    if ANY_MODEL in prices:
        return prices[ANY_MODEL]
    plain = model.rpartition("/")[2]
    named = (name for name in prices if plain.startswith(name))
    found = next((one for one in named if _VERSION.fullmatch(plain.removeprefix(one))), None)
    return prices[found] if found is not None else None


def cost_of(model: str, tokens: TokenCounts, prices: Mapping[str, Price]) -> float | None:
    """The cost in dollars; None if it cannot be known from the sums."""
    price = price_of(model, prices)
    if price is None or (price.most_input and tokens.input > price.most_input):
        return None
    cached = min(tokens.cached, tokens.input)
    dollars = (
        (tokens.input - cached) * price.input
        + cached * price.cached_input
        + tokens.output * price.output
    )
    return dollars / _MILLION
