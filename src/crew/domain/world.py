"""The world: every row of crew, and the one function that changes it by facts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, get_args

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.agent import Agent, Manager
from crew.domain.rows.channel import Channel, Member, Post
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.message import Message
from crew.domain.rows.provider import Outage, Provider
from crew.domain.rows.quest import Position, Quest
from crew.domain.rows.question import Question, Suspicion
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.rows.terminal import Terminal

if TYPE_CHECKING:
    from crew.domain.row_changes import MovedFact, NotedFact

Row = (
    Agent
    | Task
    | Run
    | Terminal
    | MergeQueue
    | Question
    | Suspicion
    | Message
    | Provider
    | Outage
    | Quest
    | Position
    | Channel
    | Member
    | Post
    | Manager
)

TABLES: Mapping[str, type[Row]] = {row.kind: row for row in get_args(Row)}
FIELDS = {kind: tuple(field.name for field in fields(table)) for kind, table in TABLES.items()}
_VALUES = {kind: attrgetter(*names) for kind, names in FIELDS.items()}
_SLOTS = {
    kind: tuple(getattr(table, name).__set__ for name in FIELDS[kind])
    for kind, table in TABLES.items()
}
_MAKE: Mapping[str, Callable[..., Row]] = TABLES
"""Stored values have any type, so that a call with them cannot be checked."""

_NAMES = {kind: frozenset(names) for kind, names in FIELDS.items()}
_ITEMS: Mapping[str, Mapping[str, Callable[..., object]]] = {
    kind: getattr(table, "items", {}) for kind, table in TABLES.items()
}
"""How the elements of a field are made from plain values, if the class of the row says so."""

_SEQUENCES = (list, tuple)
_NAME = {kind: f"{kind}s" for kind in TABLES} | {
    MergeQueue.kind: "queues",
    Position.kind: "positions",
}
"""The field of the world for the rows of a kind; facts keep the kind they were recorded with."""


@frozen
class World:
    agents: Mapping[str, Agent] = field(default_factory=dict)
    tasks: Mapping[str, Task] = field(default_factory=dict)
    runs: Mapping[str, Run] = field(default_factory=dict)
    terminals: Mapping[str, Terminal] = field(default_factory=dict)
    queues: Mapping[str, MergeQueue] = field(default_factory=dict)
    questions: Mapping[str, Question] = field(default_factory=dict)
    suspicions: Mapping[str, Suspicion] = field(default_factory=dict)
    messages: Mapping[str, Message] = field(default_factory=dict)
    providers: Mapping[str, Provider] = field(default_factory=dict)
    outages: Mapping[str, Outage] = field(default_factory=dict)
    quests: Mapping[str, Quest] = field(default_factory=dict)
    positions: Mapping[str, Position] = field(default_factory=dict)
    channels: Mapping[str, Channel] = field(default_factory=dict)
    members: Mapping[str, Member] = field(default_factory=dict)
    posts: Mapping[str, Post] = field(default_factory=dict)
    managers: Mapping[str, Manager] = field(default_factory=dict)

    @property
    def crew(self) -> dict[str, Agent]:
        """The agents of the crew now; `agents` also holds those that were dismissed."""
        return {name: one for name, one in self.agents.items() if not one.dismissed}

    def terminal_of(self, run: str) -> Terminal | None:
        """The terminal that carries this run, or is about to."""
        found = self.terminals.get(run)
        return found if found is not None and found.is_up else None

    def rows(self, kind: str) -> Mapping[str, Row]:
        rows: Mapping[str, Row] = getattr(self, _NAME[kind])
        return rows


_TABLES_OF = attrgetter(*_NAME.values())
_PUT_TABLE = {name: getattr(World, name).__set__ for name in _NAME.values()}


def apply(world: World, fact: Fact) -> World:
    """The world after this fact; a move that is not in its machine's table is refused."""
    return apply_all(world, (fact,))


def apply_all(world: World, facts: Iterable[Fact]) -> World:
    """The world after these facts; tables and rows are copied once, however often they change."""
    before: dict[tuple[str, str], Row] = {}
    changes: dict[tuple[str, str], dict[str, object]] = {}
    for fact in facts:
        key = fact.kind, fact.subject
        row = before.get(key) or world.rows(fact.kind).get(fact.subject)
        if row is None:
            before[key] = row_from(fact.kind, {**fact.changes, "id": fact.subject})
            changes[key] = {}
        else:
            before[key] = row
            changes[key] = _changed(row, changes.get(key, {}), fact)
    tables: dict[str, dict[str, Row]] = {}
    for (kind, subject), row in before.items():
        name, changed = _NAME[kind], changes[kind, subject]
        if name not in tables:
            tables[name] = dict(world.rows(kind))
        tables[name][subject] = _copied(row, changed) if changed else row
    return _with_tables(world, tables)


def _with_tables(world: World, tables: Mapping[str, Mapping[str, Row]]) -> World:
    """The world with these tables, by the name of their field, in place of its own."""
    copy = object.__new__(World)
    for put, rows in zip(_PUT_TABLE.values(), _TABLES_OF(world), strict=True):
        put(copy, rows)
    for name, rows in tables.items():
        _PUT_TABLE[name](copy, rows)
    return copy


def fold(facts: Iterable[Fact]) -> World:
    return apply_all(World(), facts)


def with_rows(rows: Iterable[Row]) -> World:
    """The world made of stored rows."""
    tables: dict[str, dict[str, Row]] = {name: {} for name in _NAME.values()}
    for row in rows:
        tables[_NAME[row.kind]][row.id] = row
    return _with_tables(World(), tables)


def row_from(kind: str, values: Mapping[str, object]) -> Row:
    """A row from plain values; lists become tuples, and values without a field are dropped."""
    known = known_values(kind, values)
    return _MAKE[kind](**_all_frozen(kind, known))


def known_values(kind: str, values: Mapping[str, object]) -> dict[str, object]:
    """The values that this version of crew has fields for; an older version had others."""
    names = _NAMES[kind]
    return {name: value for name, value in values.items() if name in names}


def _changed(row: Row, changes: Mapping[str, object], fact: Fact) -> dict[str, object]:
    """All changes of the row after this fact; `changes` are those before it."""
    changed = {**changes, **_all_frozen(fact.kind, fact.changes)}
    if fact.target is not None:
        _check_move(row, str(changes.get("state", row.state)), fact)
        changed["state"] = fact.target
    return changed


def _copied(row: Row, changes: Mapping[str, object]) -> Row:
    """As `replace`, which takes three times as long for this many fields."""
    copy = object.__new__(TABLES[row.kind])
    for put, value in zip(_SLOTS[row.kind], _VALUES[row.kind](row), strict=True):
        put(copy, value)
    for name, value in changes.items():
        object.__setattr__(copy, name, value)
    return copy


def _check_move(row: Row, state: str, fact: Fact) -> None:
    if state != fact.source:
        raise Conflict(
            f"{fact.kind} {row.id} is {state}, {fact.trigger!r} was meant for {fact.source}",
            hint="another process moved it first; look at it and try again",
            code="moved_meanwhile",
        )
    row.machine.check(source=state, target=str(fact.target), trigger=fact.trigger)


def _all_frozen(kind: str, values: Mapping[str, object]) -> dict[str, object]:
    items = _ITEMS[kind]
    return {
        name: _items(value, items.get(name)) if isinstance(value, _SEQUENCES) else value
        for name, value in values.items()
    }


def _items(values: Iterable[object], make: Callable[..., object] | None) -> tuple[object, ...]:
    items = tuple(map(_frozen, values))
    return items if make is None else tuple(map(make, items))


def _frozen(value: object) -> object:
    return tuple(map(_frozen, value)) if isinstance(value, _SEQUENCES) else value


def values_of(row: Row) -> dict[str, object]:
    """The values of all fields of a row, by name."""
    return dict(zip(FIELDS[row.kind], _VALUES[row.kind](row), strict=True))


def born(row: Row, trigger: str, *, at: float, **extra: object) -> Fact:
    """The first fact of a subject."""
    changes = {name: value for name, value in values_of(row).items() if name != "id"}
    return Fact(
        kind=row.kind,
        subject=row.id,
        trigger=trigger,
        at=at,
        target=row.state,
        changes=changes,
        extra=extra,
    )


def _moved(row: Row, trigger: str, *, to: str, at: float, **changes: object) -> Fact:
    """A fact that moves a row to another state."""
    if isinstance(row, Run):
        changes.update(row.with_move(str(to)))
    return Fact(
        kind=row.kind,
        subject=row.id,
        trigger=trigger,
        at=at,
        source=row.state,
        target=str(to),
        changes=changes,
    )


def _noted(row: Row, trigger: str, *, at: float, **changes: object) -> Fact:
    """A fact that changes fields of a row, and not its state."""
    return Fact(kind=row.kind, subject=row.id, trigger=trigger, at=at, changes=changes)


moved: "MovedFact" = _moved
noted: "NotedFact" = _noted


class FactDraft:
    """A list of facts, each made from the world after the facts before it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.facts: list[Fact] = []

    def add(self, *facts: Fact) -> None:
        self.world = apply_all(self.world, facts)
        self.facts += facts
