"""The schema is what its migrations lead to, from whatever version one starts."""

import sqlite3

import pytest

from crew.store.database import open_database
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
