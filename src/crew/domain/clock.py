"""The clock of a decision or a plan: the time now, and when to look again."""

import math
from collections.abc import Iterable

from crew.domain.commands import CommandKind


class Clock:
    """`waits` holds, by the kind of command that follows, the earliest time still to come.

    Every condition about time asks the clock, after all other conditions. `waits` then names every
    time at which time alone changes the answer. The kind None is for a time that no runner stays up
    for. If `kinds` is given, times of other kinds are not kept.
    """

    __slots__ = ("_kinds", "now", "waits")

    def __init__(self, now: float, *, kinds: frozenset[CommandKind] | None = None) -> None:
        self.now = now
        self.waits: dict[CommandKind | None, float] = {}
        self._kinds = kinds

    def has_come(self, at: float | None, then: CommandKind | None) -> bool:
        """Whether this time has come; None always has, infinity never."""
        if at is None or at <= self.now:
            return True
        if at < self.waits.get(then, math.inf) and (self._kinds is None or then in self._kinds):
            self.waits[then] = at
        return False


def next_at(clocks: Iterable[Clock]) -> float:
    """When to look again if nothing happens; infinity if time alone changes nothing."""
    return min((at for clock in clocks for at in clock.waits.values()), default=math.inf)
