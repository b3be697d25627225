"""On a disk that cannot be written, crew shows what is there and refuses to change it."""

import json
import sqlite3
import subprocess

import pytest

from agents.conftest import need
from crew.system.processes.process import working_bwrap
from front.conftest import CREW, Said

READING = (
    *("ps --json", "list --json", "show 1", "logs 1", "peek 1", "inbox", "events"),
    *("config show", "dashboard --once", "checkpoints 1", "doctor"),
)
WRITING = (
    "new --title two",
    "run --drain",
    "close 1",
    "config set run.agents 2",
)


@pytest.fixture
def read_only(scene):
    """Calls crew where the repository is mounted read-only."""
    need(bwrap := working_bwrap(), "bwrap")

    def call(*args):
        mounts = [
            "--bind",
            "/",
            "/",
            "--dev-bind",
            "/dev",
            "/dev",
            "--ro-bind",
            scene.root,
            scene.root,
        ]
        argv = [bwrap, *mounts, "--chdir", scene.root, CREW, *args]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        assert "fault in crew" not in done.stderr, done.stderr
        return Said(done.returncode, done.stdout, done.stderr)

    return call


def test_what_reads_works_and_what_writes_is_refused_in_a_sentence(scene, read_only):
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain")
    for command in READING:
        said = read_only(*command.split())
        assert said.code == 0, (command, said)
    assert "read-only" in read_only("ps").err
    assert json.loads(read_only("list", "--all", "--json").out)[0]["status"] == "merged"
    for command in WRITING:
        said = read_only(*command.split())
        assert said.code not in (0, 70), (command, said)
        assert "read-only" in said.err.lower(), (command, said)


def test_the_newest_facts_are_shown_although_only_the_wal_has_them(scene, read_only):
    scene.ok("spawn")
    database = scene.root / ".crew/crew.db"
    holder = sqlite3.connect(database)
    holder.execute("PRAGMA wal_autocheckpoint=0")
    holder.execute("SELECT * FROM rows").fetchall()
    scene.ok("spawn", "late")
    kept = {name: (database.parent / name).read_bytes() for name in ("crew.db", "crew.db-wal")}
    holder.close()
    for name, content in kept.items():
        (database.parent / name).write_bytes(content)
    (database.parent / "crew.db-shm").unlink(missing_ok=True)
    assert (database.parent / "crew.db-wal").stat().st_size > 0
    names = [agent["name"] for agent in read_only("ps", "--json").json]
    assert names == ["A", "late"]
