"""Opening, sharing and losing the database."""

import sqlite3
import threading
from pathlib import Path

import pytest

from crew.domain.kernel.errors import TryLater
from crew.domain.rows.task import Task
from crew.domain.world import World, born
from crew.store.database import StoreFailed, open_database, transaction, translated
from crew.store.fact_log import facts_after, load_world, record
from crew.store.kept_values import keep_setting, setting
from crew.store.schema import MIGRATIONS
from refusals import raises_code

NEW = born(Task(id="1", title="first"), "seen", at=1.0)


def test_what_was_recorded_is_there_when_the_database_is_opened_again(connect):
    first = connect()
    world = record(first, World(), [NEW])
    first.close()
    assert load_world(connect()) == world


def test_every_commit_is_on_the_disk_before_it_counts(db):
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)


def test_many_commands_may_open_a_new_database_at_once(path):
    start, failures = threading.Barrier(8), []

    def open_it():
        start.wait()
        try:
            open_database(path).close()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_database_of_a_newer_crew_is_refused_with_both_versions(path, connect):
    db = connect()
    db.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    with raises_code(StoreFailed, "newer_schema") as caught:
        connect()
    assert f"schema {len(MIGRATIONS) + 1}, this one knows {len(MIGRATIONS)}" in str(caught.value)
    assert "update crew" in caught.value.hint


def test_a_refused_database_is_not_kept_open(path):
    path.write_text("not a database, but a text that is long enough to look like one" * 20)
    with pytest.raises(StoreFailed) as caught:
        open_database(path)
    assert caught.value
    handles = [link.resolve() for link in Path("/proc/self/fd").glob("*")]
    assert path.resolve() not in handles


# Together


def test_a_reader_does_not_block_a_writer_and_keeps_its_own_moment(connect):
    reader, writer = connect(), connect()
    reader.execute("BEGIN")
    assert load_world(reader) == World()
    world = record(writer, World(), [NEW])
    assert load_world(reader) == World()
    reader.execute("COMMIT")
    assert load_world(reader) == world


def test_a_writer_does_not_block_a_reader(connect):
    reader, writer = connect(), connect()
    with transaction(writer):
        writer.execute("INSERT INTO settings VALUES ('name', 'value')")
        assert setting(reader, "name") is None
    assert setting(reader, "name") == "value"


def test_a_second_writer_is_told_to_try_later(connect):
    first, second = connect(), connect()
    with transaction(first), pytest.raises(TryLater) as caught:
        record(second, World(), [NEW])
    assert caught.value.exit_code == 75
    assert "locked by another program" in caught.value.message
    assert "crew ps" in caught.value.hint
    record(second, World(), [NEW])


def test_a_second_writer_waits_for_the_first_as_long_as_it_may(path, connect):
    first = connect()
    first.execute("BEGIN IMMEDIATE")
    waits = threading.Event()

    def write():
        second = open_database(path, wait_s=60.0)
        waits.set()
        keep_setting(second, "name", "second")
        second.close()

    thread = threading.Thread(target=write)
    thread.start()
    assert waits.wait(60)
    first.execute("INSERT INTO settings VALUES ('name', 'first')")
    first.execute("COMMIT")
    thread.join()
    assert setting(first, "name") == "second"


# Faults


def test_an_error_inside_a_transaction_undoes_all_of_it(db):
    def fail_after_a_write():
        with transaction(db):
            db.execute("INSERT INTO settings VALUES ('name', 'value')")
            raise KeyError

    with pytest.raises(KeyError):
        fail_after_a_write()
    assert setting(db, "name") is None
    keep_setting(db, "name", "value")


def test_a_full_disk_is_told_as_such_and_nothing_is_half_recorded(db):
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count={pages + 2}")
    many = [born(Task(id=str(n), title="x" * 500), "seen", at=1.0) for n in range(200)]
    with pytest.raises(StoreFailed, match="full") as caught:
        record(db, World(), many)
    assert "free some space" in caught.value.hint
    assert facts_after(db) == []
    db.execute("PRAGMA max_page_count=100000")
    assert load_world(db) == World()
    record(db, World(), many)
    assert len(facts_after(db)) == 200


def test_a_commit_that_fails_leaves_no_transaction_behind(db):
    db.executescript(
        "PRAGMA foreign_keys=ON; CREATE TABLE a (x PRIMARY KEY);"
        "CREATE TABLE b (x REFERENCES a DEFERRABLE INITIALLY DEFERRED);"
    )
    with pytest.raises(sqlite3.IntegrityError), transaction(db):
        db.execute("INSERT INTO b VALUES (1)")
    assert not db.in_transaction
    assert db.execute("SELECT * FROM b").fetchall() == []


def test_a_database_that_must_not_be_written_names_owner_and_permissions(db):
    db.execute("PRAGMA query_only=ON")
    with pytest.raises(StoreFailed, match="readonly") as caught:
        record(db, World(), [NEW])
    assert "owner and its permissions" in caught.value.hint


def test_a_database_in_a_folder_that_does_not_exist_names_owner_and_permissions(tmp_path):
    path = tmp_path / "missing" / "crew.db"
    with pytest.raises(StoreFailed) as caught:
        open_database(path)
    assert str(path) in caught.value.message
    assert "owner and its permissions" in caught.value.hint


def test_a_file_that_is_no_database_is_to_be_moved_away(path):
    path.write_text("These are the notes of a person, and they are long enough. " * 20)
    with pytest.raises(StoreFailed, match="not a database") as caught:
        open_database(path)
    assert "move the file away" in caught.value.hint
    assert path.read_text().startswith("These are the notes")


def test_a_corrupt_page_names_the_doctor(path, connect):
    db = connect()
    record(db, World(), [born(Task(id=str(n)), "seen", at=1.0) for n in range(500)])
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    page, content = 4096, path.read_bytes()
    path.write_bytes(content[:page] + b"\xa5" * (len(content) - page))
    with pytest.raises(StoreFailed) as caught:
        facts_after(connect())
    assert "crew doctor --repair" in caught.value.hint


def test_any_other_fault_is_told_in_the_words_of_the_database(db):
    db.execute("DROP TABLE settings")
    with pytest.raises(StoreFailed, match=r"\.crew/crew\.db: no such table: settings") as caught:
        setting(db, "name")
    assert caught.value.hint == "see the log"


def test_a_fault_without_a_number_is_told_too(db):
    db.close()
    with pytest.raises(StoreFailed, match="closed database"), translated():
        db.execute("SELECT 1")
