"""The store of a simulated crew: facts and rows, which survive a crash as text."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from operator import attrgetter

from crew.domain.kernel.fact import Fact
from crew.domain.upkeep.contradictions import settled
from crew.domain.world import FIELDS, Row, World, apply_all, row_from, with_rows

FACT_FIELDS = tuple(field.name for field in fields(Fact))
FACT_VALUES = attrgetter(*FACT_FIELDS)


class Broken(AssertionError):
    """An invariant does not hold."""


@dataclass(slots=True)
class Ledger:
    """What it holds survives a crash, as text and back.

    A fact that says as text what it said before folds to the same row. So texts are read and
    folded when somebody reads the rows, which must be what the facts fold to.
    """

    count: int = 0
    events: list[str] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    world: World = field(default_factory=World)
    _unread: list[Fact] = field(default_factory=list)
    _events_read: int = 0
    _folded: World = field(default_factory=World)
    _rows_read: dict[tuple[str, str], tuple[Row, Row]] = field(default_factory=dict)

    def record(self, world: World, facts: Iterable[Fact]) -> World:
        if world is not self.world:
            raise Broken("somebody records onto a world that is not the last one")
        facts = tuple(facts)
        self.world = apply_all(world, facts)
        self.events.append(json.dumps([FACT_VALUES(fact) for fact in facts]))
        self.count += len(facts)
        self._unread += facts
        for fact in facts:
            self.rows[fact.kind, fact.subject] = self.world.rows(fact.kind)[fact.subject]
        return self.world

    def load(self) -> World:
        facts = _facts_in(self.events[self._events_read :])
        if facts != self._unread:
            raise Broken("facts are not what they were before they were written and read")
        self.facts += facts
        self._folded = apply_all(self._folded, facts)
        self._events_read = len(self.events)
        self._unread.clear()
        self.world = with_rows(self._row(key, row) for key, row in self.rows.items())
        if self.world != self._folded:
            raise Broken("the rows are not what the facts fold to")
        if found := settled(self.world, at=0.0):
            raise Broken(f"rows contradict each other: {found[0]}")
        return self.world

    def _row(self, key: tuple[str, str], row: Row) -> Row:
        """The row as it is read; one that nobody changed reads as it did before."""
        kept, read = self._rows_read.get(key, (None, None))
        if kept is not row:
            read = row_from(row.kind, json.loads(json.dumps(_values(row))))
            self._rows_read[key] = (row, read)
        return read


def _values(row: Row) -> dict:
    return {name: getattr(row, name) for name in FIELDS[row.kind]}


def _facts_in(events: list[str]) -> list[Fact]:
    read = json.loads(f"[{','.join(events)}]")
    return [_fact_from(dict(zip(FACT_FIELDS, f, strict=True))) for event in read for f in event]


def _fact_from(values: dict) -> Fact:
    return Fact(**values | {name: _in_tuples(values[name]) for name in ("changes", "extra")})


def _in_tuples(values: dict) -> dict:
    return {name: _in_tuple(v) if isinstance(v, list) else v for name, v in values.items()}


def _in_tuple(values: list) -> tuple:
    return tuple(_in_tuple(value) if isinstance(value, list) else value for value in values)
