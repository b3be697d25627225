"""Reads the list prices of models, and the prices that an agent sets itself."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from crew.config.model import AgentSettings
from crew.domain.kernel.prices import ANY_MODEL, Price

_FILE = Path(__file__).with_name("prices.toml")


def prices_for(agent: AgentSettings) -> Mapping[str, Price]:
    """The prices by model; an agent's own price applies to all models."""
    if agent.price_input is None or agent.price_output is None:
        return listed_prices()
    cached = agent.price_cached_input
    own = Price(
        input=agent.price_input,
        cached_input=agent.price_input if cached is None else cached,
        output=agent.price_output,
    )
    return {ANY_MODEL: own}


@cache
def listed_prices() -> Mapping[str, Price]:
    import tomllib  # noqa: PLC0415 - slow to load

    listed = tomllib.loads(_FILE.read_text("utf-8"))["prices"]
    return {name: Price(**price) for name, price in listed.items()}
