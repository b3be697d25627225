"""Reads stored rows without building the domain's values, for commands that must be fast.

Building those values costs more than the rest of `crew ps`. Plain rows have the same field names,
which no type checker can see: they are `Any`, and a test compares them.
"""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from crew.store.database import Database, translated, unreadable_row

if TYPE_CHECKING:
    from crew.domain.world import World

Rows: TypeAlias = Mapping[str, Any]
"""Stored rows by their ids."""


class PlainRow:
    """A stored row. A field that is newer than the row comes from the domain's value."""

    __slots__ = ("_kind", "_values")

    def __init__(self, kind: str, values: dict[str, Any]) -> None:
        self._kind = kind
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        from crew.domain.world import row_from  # noqa: PLC0415 - only after an upgrade

        try:
            return getattr(row_from(self._kind, self._values), name)
        except (ValueError, TypeError, KeyError) as error:
            raise unreadable_row(self._kind, self._values) from error


class QuickWorld:
    """The part of the world that a command shows; the other tables are empty."""

    __slots__ = (
        *("agents", "members", "outages", "providers", "questions", "queues", "runs"),
        *("suspicions", "tasks"),
    )

    def __init__(
        self,
        *,
        queues: Rows,
        tasks: Rows,
        agents: Rows | None = None,
        runs: Rows | None = None,
        members: Rows | None = None,
        questions: Rows | None = None,
        suspicions: Rows | None = None,
        providers: Rows | None = None,
        outages: Rows | None = None,
    ) -> None:
        self.queues = queues
        self.tasks = tasks
        self.agents = agents or {}
        self.runs = runs or {}
        self.members = members or {}
        self.questions = questions or {}
        self.suspicions = suspicions or {}
        self.providers = providers or {}
        self.outages = outages or {}


ShownWorld: TypeAlias = "World | QuickWorld"
"""What a command may show: the whole world, or the part that was read quickly."""


def load_agents(db: Database) -> QuickWorld:
    """A world of the agents: their tasks, runs, merge queues, speakers and open questions."""
    agents = _rows(db, "agent")
    queues, landed = _queues(db)
    runs = _rows(db, "run", {row.run for row in agents.values()})
    tasks = _rows(db, "task", {row.task for row in agents.values()}) | landed
    members = {row.id: row for row in _rows_where(db, "member", "$.speaking")}
    return QuickWorld(
        agents=agents,
        tasks=tasks,
        runs=runs,
        queues=queues,
        members=members,
        questions={one.id: one for one in load_questions(db)},
        suspicions={one.id: one for one in _open_rows(db, "suspicion")},
        **_pauses(db),
    )


def load_pauses(db: Database) -> QuickWorld:
    """A world of the providers and the open outages."""
    return QuickWorld(queues={}, tasks={}, **_pauses(db))


def _pauses(db: Database) -> dict[str, Rows]:
    outages = {one.id: one for one in _open_rows(db, "outage")}
    return {"providers": _rows(db, "provider"), "outages": outages}


def load_questions(db: Database) -> list[Any]:
    """The questions that wait for a person."""
    return _open_rows(db, "question")


def _open_rows(db: Database, kind: str) -> list[Any]:
    with translated():
        found = db.execute(
            "SELECT value FROM rows WHERE kind = ? AND instr(value, '\"open\"')"
            " AND json_extract(value, '$.state') = 'open'",
            (kind,),
        ).fetchall()
    return [_plain(kind, value) for (value,) in found]


def load_queues(db: Database) -> QuickWorld:
    """A world of the merge queues and the tasks that landed but are not delivered yet."""
    queues, landed = _queues(db)
    return QuickWorld(queues=queues, tasks=landed)


def _queues(db: Database) -> tuple[dict[str, PlainRow], dict[str, PlainRow]]:
    """Search all tasks only if a merge queue has undelivered work."""
    queues = _rows(db, "line")
    if all(queue.delivered == queue.integration for queue in queues.values()):
        return queues, {}
    found = [row for row in _rows_where(db, "task", "$.landed_commit") if row.state == "done"]
    return queues, {row.id: row for row in found}


def find_run(db: Database, run: str) -> Any | None:
    return _rows(db, "run", {run}).get(run)


def find_runs(db: Database, runs: Iterable[str]) -> Rows:
    return _rows(db, "run", runs)


def load_terminals(db: Database) -> list[Any]:
    """The terminals in which a process runs."""
    return list(_rows_where(db, "terminal", "$.pid"))


def load_unmerged(db: Database) -> list[str]:
    """The tasks that are done and in no merge queue."""
    with translated():
        found = db.execute(
            "SELECT id FROM rows WHERE kind = 'task' AND instr(value, '\"done\"')"
            " AND json_extract(value, '$.state') = 'done'"
            " AND json_extract(value, '$.queued_at') IS NULL"
            " AND json_extract(value, '$.head') <> ''"
            " AND json_extract(value, '$.missing_at') IS NULL"
            " AND NOT json_extract(value, '$.gone')"
        ).fetchall()
    return [id_ for (id_,) in found]


def _plain(kind: str, value: str) -> PlainRow:
    try:
        values = json.loads(value)
    except (ValueError, TypeError) as error:
        raise unreadable_row(kind, value) from error
    if not isinstance(values, dict):
        raise unreadable_row(kind, value)
    return PlainRow(kind, values)


def _rows_where(db: Database, kind: str, field: str) -> list[PlainRow]:
    """The rows in which this field is set, that is neither empty nor 0."""
    with translated():
        found = db.execute(
            "SELECT value FROM rows WHERE kind = ?"
            " AND coalesce(json_extract(value, ?), '') NOT IN ('', 0)",
            (kind, field),
        ).fetchall()
    return [_plain(kind, value) for (value,) in found]


def _rows(db: Database, kind: str, ids: Iterable[str | None] | None = None) -> dict[str, PlainRow]:
    wanted = None if ids is None else json.dumps([id_ for id_ in ids if id_])
    with translated():
        found = db.execute(
            "SELECT id, value FROM rows WHERE kind = ?"
            " AND (? IS NULL OR id IN (SELECT value FROM json_each(?)))",
            (kind, wanted, wanted),
        ).fetchall()
    return {id_: _plain(kind, value) for id_, value in found}
