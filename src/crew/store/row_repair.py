"""Compares rows with their facts, and makes unreadable ones again from whatever is still whole."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.task import Task
from crew.domain.upkeep.contradictions import settled
from crew.domain.world import TABLES, Row, apply_all, fold, row_from, with_rows
from crew.store.database import Database, one_moment, transaction, translated
from crew.store.fact_log import SELECT_FACTS, fact_from, row_text, write_facts
from crew.system.crash_points import effect

Subject = tuple[str, str]
"""The kind and the id of a row."""

_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, CrewError)


@dataclass(slots=True)
class _Stored:
    """What can be read of one subject."""

    facts: list[Fact] = field(default_factory=list)
    is_damaged: bool = False
    """Whether a fact of it is unreadable, or its facts contradict each other."""
    row: Row | None = None

    def folded(self, subject: Subject) -> Row | None:
        """The row that its facts make; None if they do not."""
        kind, id_ = subject
        try:
            return None if self.is_damaged else fold(self.facts).rows(kind).get(id_)
        except _UNREADABLE:
            return None

    def pieced(self, subject: Subject) -> Row | None:
        """The row that its readable facts make without the others; None if they do not.

        The first fact has every field. Without it only a task can be made again, whose source has
        the rest. A merge queue is found again in git, which knows better than old facts.
        """
        kind, id_ = subject
        has_first = bool(self.facts) and "state" in self.facts[0].changes
        if kind == MergeQueue.kind or not (has_first or (kind == Task.kind and self.facts)):
            return None
        values: dict[str, object] = {"id": id_}
        for fact in self.facts:
            values |= dict(fact.changes) | ({"state": fact.target} if fact.target else {})
        try:
            return row_from(kind, values)
        except _UNREADABLE:
            return None


def differences(db: Database) -> list[str]:
    """The subjects whose row differs from their facts: none, unless the database was damaged."""
    with translated(), one_moment(db):
        found = _stored(db)
    wrong = [one for one, stored in found.items() if _is_wrong(one, stored)]
    return sorted(f"{kind}:{id_}" for kind, id_ in wrong)


def _is_wrong(subject: Subject, stored: _Stored) -> bool:
    folded = stored.folded(subject)
    return folded is None or folded != stored.row


@effect("store.rebuild")
def rebuild_rows(db: Database, *, keep_rows: bool = False) -> list[str]:
    """Make every wrong row again from its facts; what could not be, in sentences.

    A subject with an unreadable fact keeps its row, and one new fact replaces its history. With
    `keep_rows`, which is for lost facts, so does each subject whose row can be read.
    """
    lost = []
    with translated(), transaction(db):
        for subject, stored in _stored(db).items():
            if _is_wrong(subject, stored):
                lost += _rebuild(db, subject, stored, keep_row=keep_rows)
        if lost or keep_rows:
            _settle(db)
    return lost


def _rebuild(db: Database, subject: Subject, stored: _Stored, *, keep_row: bool) -> list[str]:
    """Make one row again; what could not be, in a sentence."""
    name, folded = ":".join(subject), stored.folded(subject)
    if folded is not None and not (keep_row and stored.row):
        _keep_row(db, folded)
        return []
    if stored.row is not None:
        _start_again(db, stored.row)
        return [f"the history of {name} could not be read; its row is kept"]
    pieced = stored.pieced(subject)
    if pieced is not None:
        _start_again(db, pieced)
        return [f"{name} is put together from the facts that can be read"]
    _forget(db, subject)
    return [f"{name} is lost: neither its facts nor its row can be read"]


def _settle(db: Database) -> None:
    """Settle what rows of different age say about each other."""
    world = with_rows(row for _, _, row in _rows(db) if row is not None)
    facts = settled(world, at=_newest(db))
    if facts:
        write_facts(db, facts, apply_all(world, facts))


def _stored(db: Database) -> dict[Subject, _Stored]:
    found: dict[Subject, _Stored] = {}
    for values in db.execute(f"{SELECT_FACTS} ORDER BY id"):
        stored = found.setdefault((str(values[2]), str(values[3])), _Stored())
        try:
            stored.facts.append(fact_from(values))
        except _UNREADABLE:
            stored.is_damaged = True
    for kind, id_, row in _rows(db):
        found.setdefault((kind, id_), _Stored()).row = row
    return found


def _rows(db: Database) -> Iterator[tuple[str, str, Row | None]]:
    for kind, id_, value in db.execute("SELECT kind, id, value FROM rows"):
        try:
            row = row_from(kind, json.loads(value))
            yield str(kind), str(id_), row if row.id == id_ and kind in TABLES else None
        except _UNREADABLE:
            yield str(kind), str(id_), None


def _keep_row(db: Database, row: Row) -> None:
    values = (row.kind, row.id, row_text(row))
    db.execute("INSERT OR REPLACE INTO rows (kind, id, value) VALUES (?, ?, ?)", values)


def _start_again(db: Database, row: Row) -> None:
    """One fact that has all values of the row, in place of facts that do not lead to it."""
    values: tuple[Any, ...] = (_newest(db), row.kind, row.id, row_text(row))
    _forget(db, (row.kind, row.id))
    db.execute(
        'INSERT INTO facts (at, kind, subject, "trigger", changes, extra)'
        " VALUES (?, ?, ?, 'repaired', ?, '{}')",
        values,
    )
    _keep_row(db, row)


def _newest(db: Database) -> float:
    found = db.execute("SELECT max(at) FROM facts WHERE typeof(at) = 'real'").fetchone()
    return float(found[0] or 0.0)


def _forget(db: Database, subject: Subject) -> None:
    db.execute("DELETE FROM facts WHERE kind = ? AND subject = ?", subject)
    db.execute("DELETE FROM rows WHERE kind = ? AND id = ?", subject)
