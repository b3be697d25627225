"""Runs a crew of coding agents on one git repository and lands only what is proven."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crew.front.python.crew import Crew, Event, Quest, Running

__all__ = ["Crew", "Event", "Quest", "Running", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Loaded when it is first asked for: the command line must not pay for it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - the command line must not pay for it

    return getattr(importlib.import_module("crew.front.python.crew"), name)
