"""The schema is what its migrations lead to, from whatever version one starts."""

import json
import sqlite3
from contextlib import closing

import pytest

from crew.domain.rows.run import Run
from crew.store.database import open_database
from crew.store.fact_log import load_world
from crew.store.row_repair import differences
from crew.store.schema import MIGRATIONS


def schema_of(db):
    return db.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()


@pytest.mark.parametrize("version", range(len(MIGRATIONS) + 1))
def test_a_database_of_every_version_opens_with_the_present_schema(tmp_path, db, version):
    old = sqlite3.connect(tmp_path / "old.db", isolation_level=None)
    for statements in MIGRATIONS[:version]:
        for statement in statements:
            old.execute(statement)
    old.execute(f"PRAGMA user_version={version}")
    old.close()
    migrated = open_database(tmp_path / "old.db")
    assert schema_of(migrated) == schema_of(db)
    assert migrated.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    migrated.close()


def test_the_tables_are_those_that_the_store_speaks_of(db):
    tables = {name for kind, name, _ in schema_of(db) if kind == "table"}
    assert tables - {"sqlite_sequence"} == {
        "facts",
        "rows",
        "requests",
        "doing",
        "settings",
        "task_index",
    }


def test_a_number_is_never_given_twice_even_if_its_fact_or_request_is_deleted(db):
    for table in ("facts", "requests"):
        (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        assert "AUTOINCREMENT" in sql


RUN = {"id": "1.1", "task": "1", "state": "working", "agent_kind": "claude"}
IN_RUNS = {"pane": "crew-1", "pane_number": 2, "pane_pid": 42, "pane_started": 7}


@pytest.mark.parametrize(
    ("fields", "terminal"),
    [
        ({}, {"state": "open", "number": 2, "pid": 42, "started": 7}),
        ({"untyped": True}, {"state": "open", "untyped": True}),
        ({"leaving": "ended"}, {"state": "leaving", "leaving": "ended"}),
        ({"pane_pid": None, "pane_started": None}, {"state": "asked", "pid": None}),
        ({"pane": "", "pane_pid": None, "pane_started": None}, {"state": "closed", "number": 2}),
    ],
)
def test_a_terminal_that_was_part_of_its_run_gets_a_row_of_its_own(tmp_path, fields, terminal):
    with closing(old_database(tmp_path, {**RUN, **IN_RUNS, **fields})) as db:
        world = load_world(db)
        assert world.runs["1.1"] == Run(id="1.1", task="1", state="working", agent_kind="claude")
        found = world.terminals["1.1"]
        assert found.task == "1"
        assert {name: getattr(found, name) for name in terminal} == terminal
        assert differences(db) == []


def test_a_run_of_an_earlier_version_without_a_terminal_gets_none(tmp_path):
    with closing(old_database(tmp_path, {**RUN, "pane": "", "leaving": "stopped"})) as db:
        assert load_world(db).terminals == {}
        assert load_world(db).runs["1.1"].stopping
        assert differences(db) == []


def old_database(folder, run):
    """A database of the first version with this run and the fact that made it."""
    old = sqlite3.connect(folder / "old.db", isolation_level=None)
    for statement in MIGRATIONS[0]:
        old.execute(statement)
    old.execute("PRAGMA user_version=1")
    values = json.dumps(run)
    old.execute("INSERT INTO rows VALUES ('run', '1.1', ?)", (values,))
    old.execute(
        'INSERT INTO facts (at, kind, subject, "trigger", target, changes, extra)'
        " VALUES (1.0, 'run', '1.1', 'created', 'working', ?, '{}')",
        (values,),
    )
    old.close()
    return open_database(folder / "old.db")
