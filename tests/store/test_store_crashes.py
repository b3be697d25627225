"""Whatever moment a writer is killed at, the store is whole and the work can be repeated."""

import os
import subprocess
import sys

import pytest

import crew.store.fact_log
import crew.store.kept_values
import crew.store.place_record
import crew.store.request_queue
import crew.store.runner_lock
from crew.system.crash_points import EFFECTS

# One interpreter for all deaths: each is a fork, which dies one moment later than the one before.
WORK = """
import os
import signal
import sys
from pathlib import Path
from crew.system import crash_points
from crew.domain.requests import Request
from crew.domain.rows.task import Task
from crew.domain.world import World, born, noted
from crew.store import fact_log, row_repair
from crew.store import request_queue
from crew.store import kept_values
from crew.store import replies
from crew.store.database import open_database
from crew.store.place_record import Place, keep_place, read_place
from crew.store.runner_lock import COMMAND, writer_lock

BATCHES = [
    [born(Task(id="1"), "seen", at=1.0), born(Task(id="2"), "seen", at=1.0)],
    [noted(Task(id=i), "edited", at=2.0, title="new") for i in "12"],
]

def work(die_in_sql=None):
    with writer_lock(Path("lock"), role=COMMAND, started="now"):
        db = open_database(Path("crew.db"))
        if die_in_sql is not None:
            watch(db, die_in_sql)
        world = fact_log.load_world(db)
        done = len(fact_log.facts_after(db)) // 2
        for batch in BATCHES[done:]:
            world = fact_log.record(db, world, batch)
        row_repair.rebuild_rows(db)
        kept_values.keep_setting(db, "name", "value")
        kept_values.first_setting(db, "first", str(os.getpid()))
        kept_values.keep_doing(db, "A", "reads", at=1.0)
        kept_values.keep_index(db, "files", [1])
        request_queue.drop_requests(db)
        fact_log.record(db, world, (), reply=replies.Reply(ask(db), {"reply": 1}))
        request_queue.withdraw(db, ask(db))
        db.close()
        keep_place(Path.cwd(), Place(id="mine", path="here", root="here"))

def ask(db):
    return request_queue.add_request(db, Request(verb="look", args={}), at=1.0)

def watch(db, left):
    def count(statement):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    db.set_trace_callback(count)

def check(where):
    db = open_database(Path("crew.db"))
    found = [fact.trigger for _, fact in fact_log.facts_after(db)]
    assert found in ([], ["seen"] * 2, ["seen"] * 2 + ["edited"] * 2), (where, found)
    assert row_repair.differences(db) == [], where
    assert read_place(Path.cwd()) or not Path("crew/place").exists(), where
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",), where
    db.close()

def check_end():
    db = open_database(Path("crew.db"))
    assert len(fact_log.facts_after(db)) == 4
    assert {t.title for t in fact_log.load_world(db).tasks.values()} == {"new"}
    assert request_queue.open_requests(db) == []
    db.close()

def die(point, number):
    child = os.fork()
    if not child:
        if point == "sql":
            work(die_in_sql=number)
        else:
            crash_points._at, crash_points._left = point, number
            work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def all_deaths_at(point):
    for number in range(1, 200):
        folder = start / f"{point}-{number}"
        folder.mkdir()
        os.chdir(folder)
        if (status := die(point, number)) == 0:
            return number - 1
        assert status == -signal.SIGKILL, (point, number, status)
        check((point, number))
        work()
        check_end()

start = Path.cwd()
for point in sys.argv[1:]:
    print(point, all_deaths_at(point), flush=True)
"""

OF_SALVAGE = {"store.keep_damaged", "store.replace", "store.save_again"}
"""Killed in `test_salvage.py` and `test_cli_lost_folder.py`: they need a lost database."""
EFFECT_NAMES = {name for name in EFFECTS if name.startswith("store.")} - OF_SALVAGE


def deaths_at(*points, folder):
    """How often a process died at each point, having been found whole after every death."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("CREW_")}
    done = subprocess.run(
        [sys.executable, "-c", WORK, *points],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def test_every_write_of_the_store_is_an_effect():
    assert crew.store.fact_log
    assert {
        "store.ask",
        "store.doing",
        "store.drop_requests",
        "store.first_set",
        "store.index",
        "store.keep_place",
        "store.lock",
        "store.migrate",
        "store.rebuild",
        "store.record",
        "store.set",
        "store.withdraw",
    } == EFFECT_NAMES


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_death_before_or_after_a_write_loses_nothing_that_was_written(when, tmp_path):
    points = {f"{name}.{when}": 1 for name in sorted(EFFECT_NAMES)}
    points |= {f"store.record.{when}": 3, f"store.ask.{when}": 2}
    assert deaths_at(*points, folder=tmp_path) == points


def test_a_death_between_two_statements_leaves_whole_batches_only(tmp_path):
    assert deaths_at("sql", folder=tmp_path)["sql"] > 20
