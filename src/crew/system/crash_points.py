"""Named crash points: a test can kill the process before or after each effect.

`CREW_CRASH_AT=name:n` kills the process when it reaches that point for the n-th time, e.g.
`CREW_CRASH_AT=store.commit.before:3`. With `name:n:enospc` the disk is full at that moment, once:
an error is raised instead. Without the variable an effect costs one comparison.
"""

import errno
import functools
import os
import signal
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

EFFECTS: set[str] = set()
"""The names of all effects in loaded modules. Tests prove that crew survives a crash at each."""

_at, _left, _how = "", 1, ""


def arm(words: str) -> None:
    """Choose the crash point of this process; `""` chooses none."""
    global _at, _left, _how  # noqa: PLW0603 - one choice for the whole process
    _at, count, _how = (*words.split(":"), "", "")[:3]
    _left = int(count or 1)


arm(os.environ.get("CREW_CRASH_AT", ""))


def effect(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function that changes the outside, with a crash point before and after it."""
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
    """Kill this process, as `kill -9` would, or raise, if the environment asks for it."""
    global _left  # noqa: PLW0603 - a countdown for the whole process
    if point != _at:
        return
    _left -= 1
    if _left == 0 and _how == "enospc":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), point)
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
