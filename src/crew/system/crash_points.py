"""Named crash points: every write to the outside is an effect that a test can die before or after.

`CREW_CRASH_AT=name:n` kills the process at the n-th time that point is reached, e.g.
`CREW_CRASH_AT=store.commit.before:3`. Without the variable an effect costs one comparison.
"""

import functools
import os
import signal
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

EFFECTS: set[str] = set()
"""The names of all effects whose modules are loaded; tests prove that each one is survived."""

_at, _, _count = os.environ.get("CREW_CRASH_AT", "").partition(":")
_left = int(_count or 1)


def effect(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function that changes the outside; a crash before and after it can then be tried."""
    EFFECTS.add(name)

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def marked(*args: P.args, **kwargs: P.kwargs) -> R:
            crash_point(f"{name}.before")
            result = function(*args, **kwargs)
            crash_point(f"{name}.after")
            return result

        return marked

    return mark


def crash_point(point: str) -> None:
    """Die here, as from `kill -9`, if the environment says so."""
    global _left  # noqa: PLW0603 - a countdown for the whole process
    if point != _at:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
