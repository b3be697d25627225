"""Makes a value again only when a part of the picture that it is made from is another object."""

import functools
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from crew.front.tui.live.picture import Picture

Value = TypeVar("Value")
Parts = tuple[object, ...]

KEPT = 8
"""How many values are kept: one for each crew of a view over several."""


def made_once(
    parts_of: Callable[[Picture], Parts],
) -> Callable[[Callable[[Picture], Value]], Callable[[Picture], Value]]:
    """Facts replace the tables that they change and no other, so that identity tells enough."""

    def wrap(make: Callable[[Picture], Value]) -> Callable[[Picture], Value]:
        known: deque[tuple[Parts, Value]] = deque(maxlen=KEPT)

        @functools.wraps(make)
        def made(picture: Picture) -> Value:
            parts = parts_of(picture)
            for before, value in known:
                if all(one is other for one, other in zip(before, parts, strict=True)):
                    return value
            value = make(picture)
            known.append((parts, value))
            return value

        return made

    return wrap


def tasks_and_items(picture: Picture) -> Parts:
    return picture.world.tasks, picture.items
