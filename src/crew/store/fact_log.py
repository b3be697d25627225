"""Facts and the rows they change, recorded in one transaction."""

import json
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.text import as_json
from crew.domain.world import (
    Row,
    World,
    apply_all,
    known_values,
    row_from,
    values_of,
    with_rows,
)
from crew.store.database import Database, transaction, translated, unreadable_row, without_sync
from crew.store.replies import Reply, keep_reply
from crew.system.crash_points import effect

SELECT_FACTS = 'SELECT id, at, kind, subject, "trigger", source, target, changes, extra FROM facts'

_LIVE = """
    SELECT kind, value FROM rows WHERE kind < 'post'
    UNION ALL SELECT kind, value FROM rows WHERE kind > 'post'
    UNION ALL SELECT post.kind, post.value FROM rows AS channel JOIN rows AS post
        ON post.kind = 'post' AND post.id > channel.id || '/' AND post.id < channel.id || '0'
        WHERE channel.kind = 'channel' AND json_extract(channel.value, '$.state') = 'open'
"""
"""A post's id begins with its channel's id and a slash. The next character in order is 0."""

_OF_CHANNEL = """(kind = 'channel' AND subject = ?
    OR kind IN ('member', 'post') AND subject > ? || '/' AND subject < ? || '0')"""


_ONE = "SELECT value FROM rows WHERE kind = ? AND id = ?"

_FOUND_AGAIN = frozenset(
    {
        "process_started",
        "prepared",
        "assembled",
        "tested",
        "written",
        "worktree_removed",
        "turn_started",
    }
)
"""Triggers of facts that may be lost in a power failure, together with all later facts.

The next runner finds them out by itself: it plans their commands again, and these check the state.
"""


def record(
    db: Database, world: World, facts: Iterable[Fact], *, reply: Reply | None = None
) -> World:
    """Write the facts and the rows they change in one transaction; the world after them.

    A reply is part of the transaction, so that it matches what was recorded.
    """
    facts = tuple(facts)
    world = apply_all(world, facts)
    if facts or reply:
        may_wait = not reply and all(fact.trigger in _FOUND_AGAIN for fact in facts)
        with translated(), without_sync(db) if may_wait else nullcontext():
            _write(db, facts, world, reply)
    return world


@effect("store.record")
def _write(db: Database, facts: tuple[Fact, ...], world: World, reply: Reply | None) -> None:
    with transaction(db):
        write_facts(db, facts, world)
        if reply:
            keep_reply(db, reply)


def write_facts(db: Database, facts: Iterable[Fact], world: World) -> None:
    """Write the facts and the rows they change; `world` is the one after them."""
    facts = tuple(facts)
    touched = {(fact.kind, fact.subject) for fact in facts}
    db.executemany(
        'INSERT INTO facts (at, kind, subject, "trigger", source, target, changes, extra)'
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [_fact_values(fact) for fact in facts],
    )
    db.executemany(
        "INSERT OR REPLACE INTO rows (kind, id, value) VALUES (?, ?, ?)",
        [(kind, id_, row_text(world.rows(kind)[id_])) for kind, id_ in touched],
    )


def load_world(db: Database) -> World:
    """All rows that can still change, so without the posts of closed channels.

    Their number grows every day. `load_some` reads them for people.
    """
    return _load(db, _LIVE)


def _load(db: Database, select: str) -> World:
    with translated():
        found = db.execute(select).fetchall()
    return with_rows(_row(kind, value) for kind, value in found)


def _row(kind: str, value: str) -> Row:
    try:
        return row_from(kind, json.loads(value))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise unreadable_row(kind, value) from error


def load_some(db: Database, kind: str, ids: Iterable[str]) -> list[Row]:
    """The rows with these ids, in this order. Missing rows are left out."""
    with translated():
        found = [db.execute(_ONE, (kind, id_)).fetchone() for id_ in ids]
    return [_row(kind, row[0]) for row in found if row]


def load_rows(db: Database, kind: str) -> dict[str, Row]:
    """The rows of one kind."""
    with translated():
        found = db.execute("SELECT id, value FROM rows WHERE kind = ?", (kind,)).fetchall()
    return {id_: _row(kind, value) for id_, value in found}


def facts_after(
    db: Database,
    number: int = 0,
    *,
    subject: str | None = None,
    channel: str = "",
    since: float = 0.0,
) -> list[tuple[int, Fact]]:
    """The facts after this number, oldest first. `subject` is an id or `kind:id`.

    The facts of a channel include those of its members and posts.
    """
    kind, _, id_ = (subject or "").rpartition(":")
    with translated():
        found = db.execute(
            f"{SELECT_FACTS} WHERE id > ? AND at >= ? AND (? = '' OR subject = ?)"
            f" AND (? = '' OR kind = ?) AND (? = '' OR {_OF_CHANNEL}) ORDER BY id",
            (number, since, id_, id_, kind, kind, channel, channel, channel, channel),
        ).fetchall()
    return [(row[0], fact_from(row)) for row in found]


def last_facts(db: Database, kind: str, trigger: str, *, count: int) -> list[tuple[int, Fact]]:
    """The newest facts of a kind with this trigger, oldest first, each with its number."""
    with translated():
        found = db.execute(
            f'{SELECT_FACTS} WHERE kind = ? AND "trigger" = ? ORDER BY id DESC LIMIT ?',
            (kind, trigger, count),
        ).fetchall()
    return [(row[0], fact_from(row)) for row in reversed(found)]


def next_facts(db: Database, number: int, *, count: int) -> list[tuple[int, Fact]]:
    """The first facts after this number."""
    with translated():
        found = db.execute(
            f"{SELECT_FACTS} WHERE id > ? ORDER BY id LIMIT ?", (number, count)
        ).fetchall()
    return [(row[0], fact_from(row)) for row in found]


def run_agents(db: Database) -> dict[str, str]:
    """The last agent of each run: the row of a finished run has none."""
    select = "SELECT subject, json_extract(changes, '$.agent') FROM facts"
    with translated():
        found = db.execute(
            f"{select} WHERE kind = 'run' AND changes LIKE '%\"agent\":\"%' ORDER BY id"
        )
        return {run: agent for run, agent in found.fetchall() if agent}


def facts_of(db: Database, subjects: Iterable[tuple[str, str]]) -> list[tuple[int, Fact]]:
    """All facts of these rows, each a kind and an id, oldest first; no other fact is read."""
    found: list[Any] = []
    with translated():
        for subject in subjects:
            found += db.execute(f"{SELECT_FACTS} WHERE kind = ? AND subject = ?", subject)
    return sorted(((row[0], fact_from(row)) for row in found), key=lambda numbered: numbered[0])


def last_fact(db: Database) -> int:
    """The number of the newest fact; 0 if there is none."""
    with translated():
        return int(db.execute("SELECT coalesce(max(id), 0) FROM facts").fetchone()[0])


def _fact_values(fact: Fact) -> tuple[Any, ...]:
    return (
        fact.at,
        fact.kind,
        fact.subject,
        fact.trigger,
        fact.source,
        fact.target,
        _text(fact.changes),
        _text(fact.extra),
    )


def fact_from(row: tuple[Any, ...]) -> Fact:
    _, at, kind, subject, trigger, source, target, changes, extra = row
    return Fact(
        kind=kind,
        subject=subject,
        trigger=trigger,
        at=at,
        source=source,
        target=target,
        changes=known_values(kind, json.loads(changes)),
        extra=json.loads(extra),
    )


def row_text(row: Row) -> str:
    return _text(values_of(row))


def _text(value: Mapping[str, Any]) -> str:
    return as_json(value, separators=(",", ":"))
