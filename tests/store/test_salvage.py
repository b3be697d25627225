"""A database with damaged pages is made again from what can be read of it."""

import os
import random
import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest

from crew.domain.rows.agent import Agent
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.world import World, born, noted
from crew.store.database import DAMAGED, StoreFailed, check_whole
from crew.store.fact_log import facts_after, load_world, record
from crew.store.kept_values import keep_setting, setting
from crew.store.row_repair import differences
from crew.store.salvage import salvage
from refusals import raises_code

PAGE = 4096
COUNT = 300


@pytest.fixture
def full(path, connect):
    """A database of many pages; the bodies of some tasks are longer than a page."""
    db = connect()
    keep_setting(db, "repo_id", "mine")
    keep_setting(db, "epoch", "7")
    tasks = [
        Task(id=str(n), title=f"title {n}" * (1000 if n % 50 == 0 else 5)) for n in range(COUNT)
    ]
    world = record(db, World(), [born(task, "seen", at=1.0) for task in tasks])
    return record(db, world, [noted(task, "edited", at=2.5, issue=9) for task in tasks])


def rewrite(path, connect, change):
    """Close the database, and change its bytes."""
    connect().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    change(content)
    path.unlink()
    path.write_bytes(content)


def damage(content, *pages):
    for page in pages:
        content[page * PAGE : (page + 1) * PAGE] = b"\xa5" * PAGE


def pages_of(path, table):
    with sqlite3.connect(path) as db:
        found = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    return found[0] - 1


def test_a_whole_database_is_copied_as_it_is(path, connect, full):
    facts = facts_after(connect())
    saved = salvage(path)
    assert saved.lost == ()
    assert (load_world(connect()), facts_after(connect())) == (full, facts)
    assert (setting(connect(), "repo_id"), setting(connect(), "epoch")) == ("mine", "7")


@pytest.mark.parametrize("table", ["facts", "rows", "facts_of_subject"])
def test_no_row_is_lost_with_the_page_that_leads_to_the_others(path, connect, full, table):
    root = pages_of(path, table)
    rewrite(path, connect, lambda content: damage(content, root))
    with raises_code(StoreFailed, DAMAGED):
        check_whole(connect())
    saved = salvage(path)
    fresh = connect()
    check_whole(fresh)
    assert differences(fresh) == []
    assert load_world(fresh) == full
    assert saved.aside.read_bytes()[root * PAGE] == 0xA5


def test_the_first_page_may_be_damaged(path, connect, full):
    rewrite(path, connect, lambda content: damage(content, 0))
    with raises_code(StoreFailed, DAMAGED) as caught:
        connect()
    assert "crew doctor --repair" in caught.value.hint
    salvage(path)
    assert load_world(connect()) == full


def test_the_newest_facts_are_found_although_only_the_wal_has_them(path, connect, full):
    wal = path.with_name("crew.db-wal")
    late = wal.read_bytes()
    assert len(late) > PAGE
    content = bytearray(path.read_bytes())
    path.unlink()
    wal.unlink()
    path.write_bytes(content)
    wal.write_bytes(late)
    saved = salvage(path)
    assert (saved.lost, load_world(connect())) == ((), full)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_damaged_the_rest_is_kept_and_the_loss_is_counted(path, connect, full, seed):
    chance = random.Random(seed)
    total = len(path.read_bytes()) // PAGE

    def flip(content):
        for _ in range(chance.choice((1, 5, 40))):
            content[chance.randrange(len(content))] ^= chance.randrange(1, 256)
        damage(content, *chance.sample(range(len(content) // PAGE), chance.choice((0, 1, 3))))

    rewrite(path, connect, flip)
    saved = salvage(path)
    fresh = connect()
    check_whole(fresh)
    assert differences(fresh) == []
    kept = load_world(fresh).tasks
    lost = [id_ for id_ in full.tasks if id_ not in kept]
    assert len(lost) < COUNT / 2, (seed, total)
    assert bool(saved.lost) or not lost


def test_a_row_is_newer_than_facts_of_which_the_newest_may_be_lost(path, connect, full):
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM facts WHERE id > ?", (COUNT,))  # as when their pages are damaged
        db.execute("DELETE FROM sqlite_sequence")
        db.execute("DROP INDEX facts_of_subject")
    saved = salvage(path)
    assert saved.lost[0] == "the newest facts may be lost"
    assert load_world(connect()) == full


@pytest.mark.parametrize("place", [b"title 7title", b'"issue":9', b"edited", b"mine"])
def test_a_text_that_cannot_be_decoded_is_damage_and_loses_no_row(path, connect, full, place):
    """SQLite's own check does not find it, and every command would fail at it."""

    def flip(content):
        content[content.index(place)] ^= 0xFF

    rewrite(path, connect, flip)
    with raises_code(StoreFailed, DAMAGED):
        check_whole(connect())
    salvage(path)
    check_whole(connect())
    assert load_world(connect()) == full


def test_a_row_whose_text_and_one_of_whose_facts_are_damaged_is_put_together(path, connect, full):
    with sqlite3.connect(path) as db:
        db.execute("UPDATE facts SET changes = '{' WHERE subject = '7' AND \"trigger\" = 'edited'")
        db.execute("UPDATE rows SET value = '{' WHERE id = '7'")
    assert "put together" in salvage(path).lost[0]
    assert load_world(connect()).tasks["7"] == replace(full.tasks["7"], issue=None)


def test_a_run_without_its_first_fact_is_not_put_together(path, connect, full):
    """It would have no agent kind, and no agent could take it up."""
    run = Run(id="7.1", task="7", agent_kind="sh")
    record(connect(), full, [born(run, "created", at=3.0), noted(run, "noted", at=4.0, step=2)])
    with sqlite3.connect(path) as db:
        db.execute("UPDATE facts SET changes = '{' WHERE subject = '7.1' AND target IS NOT NULL")
        db.execute("UPDATE rows SET value = '{' WHERE id = '7.1'")
    assert "7.1 is lost" in salvage(path).lost[0]
    assert load_world(connect()).runs == {}


def test_rows_that_fit_no_longer_together_are_detached(path, connect):
    agent = Agent(id="A", agent_kind="sh", state="working", task="1", run="1.1")
    run = Run(id="1.1", task="1", agent="A", state="working")
    task = Task(id="1", state="in_progress", run="1.1", run_count=1)
    facts = [born(row, "seen", at=1.0) for row in (agent, run, task)]
    record(connect(), World(), facts)
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM facts WHERE kind = 'run'")
        db.execute("DELETE FROM rows WHERE kind = 'run'")
    salvage(path)
    world = load_world(connect())
    assert (world.agents["A"].state, world.tasks["1"].state) == ("idle", "todo")
    assert differences(connect()) == []


def test_a_damaged_name_in_the_schema_is_damage(path, connect, full):
    def flip(content):
        content[content.index(b"facts_of_subject") + 3] ^= 0xFF

    rewrite(path, connect, flip)
    with raises_code(StoreFailed, DAMAGED):
        check_whole(connect())
    salvage(path)
    assert load_world(connect()) == full


def test_a_damaged_database_without_any_fact_becomes_an_empty_one(path, connect):
    connect()
    rewrite(path, connect, lambda content: damage(content, 3, 5))
    salvage(path)
    check_whole(connect())
    assert load_world(connect()) == World()


def test_a_file_that_is_not_crews_is_left_where_it_is(path, connect):
    path.write_text("These are the notes of a person, and they are long enough. " * 200)
    with pytest.raises(StoreFailed) as caught:
        salvage(path)
    assert "move the file away" in caught.value.hint
    assert path.read_text().startswith("These are the notes")


KILLED = """
import sys
from pathlib import Path
from crew.store.salvage import salvage
salvage(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("effect", ["store.keep_damaged", "store.replace", "store.rebuild"])
def test_a_repair_that_was_killed_can_be_done_again(path, connect, full, effect, when):
    root = pages_of(path, "rows")
    rewrite(path, connect, lambda content: damage(content, root))
    env = {**os.environ, "CREW_CRASH_AT": f"{effect}.{when}"}
    killed = subprocess.run([sys.executable, "-c", KILLED, path], env=env, check=False)
    assert killed.returncode == -9
    salvage(path)
    assert load_world(connect()) == full
