"""The clock of a decision or a plan: what time it is, and when to look again."""

import math
from collections.abc import Iterable

from crew.domain.commands import CommandKind


class Clock:
    """`waits` holds, by the kind of command that follows, the first moment still to come.

    Every condition about time is asked of the clock, after all other conditions. `waits` then names
    the moments at which time alone changes the answer, and no such moment can be forgotten. The
    kind None is for a moment that no runner stays up for. Moments of other kinds than `kinds`, if
    given, are not kept.
    """

    __slots__ = ("_kinds", "now", "waits")

    def __init__(self, now: float, *, kinds: frozenset[CommandKind] | None = None) -> None:
        self.now = now
        self.waits: dict[CommandKind | None, float] = {}
        self._kinds = kinds

    def has_come(self, at: float | None, then: CommandKind | None) -> bool:
        """Whether it is time; None is always in time, infinity never."""
        if at is None or at <= self.now:
            return True
        if at < self.waits.get(then, math.inf) and (self._kinds is None or then in self._kinds):
            self.waits[then] = at
        return False


def next_at(clocks: Iterable[Clock]) -> float:
    """When to look again although nothing happens; infinity if time alone changes nothing."""
    return min((at for clock in clocks for at in clock.waits.values()), default=math.inf)
