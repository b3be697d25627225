"""A database with damaged pages: each command names the remedy, and the remedy works."""

import random
import sqlite3
from contextlib import closing

import pytest

from crew.domain.kernel.names import made_ref

PAGE = 4096
COMMANDS = (
    *("ps", "list", "show 1", "inbox", "events", "logs 1", "diff 1", "doctor"),
    *("new --title more", "spawn", "run --drain", "close 2", "stop", "prune", "config show"),
)


@pytest.fixture
def worked(scene):
    """A crew that merged one task and has another that waits."""
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain")
    scene.ok("new", "--title", "two")
    scene.ok("spawn")
    return scene


def damage(scene, seed):
    """Overwrite pages or flip bytes of the database, in a file of its own."""
    chance = random.Random(seed)
    path = scene.root / ".crew/crew.db"
    content = bytearray(path.read_bytes())
    for page in chance.sample(range(len(content) // PAGE), 2 + seed):
        content[page * PAGE : page * PAGE + 200] = b"\xa5" * 200
    path.unlink()
    path.write_bytes(content)


def test_every_command_names_the_remedy_in_a_sentence(worked):
    damage(worked, seed=8)
    for command in COMMANDS:
        said = worked.crew(*command.split())
        assert said.code != 70, (command, said)
        if said.code:
            assert "crew doctor --repair" in said.err + said.out, (command, said)
    assert worked.crew("ps").code == 1


@pytest.mark.parametrize("seed", range(4))
def test_repair_makes_a_new_database_and_the_crew_continues(worked, seed):
    damage(worked, seed)
    said = worked.crew("doctor", "--repair")
    (aside,) = (worked.root / ".crew").glob("crew.db.damaged-????????")
    (found,) = [line for line in said.lines if aside.name in line]
    assert "lost" in found
    assert "✗" not in worked.ok("doctor").out
    worked.ok("run", "--drain")
    assert worked.status("2") == "merged"
    subjects = worked.git("log", "--format=%s", "main").splitlines()
    assert subjects.count("task 1") == 1
    assert subjects.count("task 2") == 1


def test_a_lost_task_that_was_at_work_starts_again(worked):
    """Its file has the state of that time, in which no agent would take it up."""
    worked.ok("edit", "2", "--body", "more")
    path = worked.root / ".crew/crew.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM facts WHERE kind = 'task' AND subject = '2'")
        db.execute("DELETE FROM rows WHERE kind = 'task' AND id = '2'")
    meta = worked.root / ".crew/tasks/default/2.meta.json"
    meta.write_text(meta.read_text().replace('"todo"', '"in_progress"'))
    worked.git("branch", "crew-2")
    worked.git("update-ref", made_ref("crew-2"), "crew-2")
    content = bytearray(path.read_bytes())
    content[content.rindex(b'"agent_kind"') + 3] ^= 0xFF
    path.unlink()
    path.write_bytes(content)
    worked.ok("doctor", "--repair")
    worked.ok("run", "--drain")
    assert worked.status("2") == "merged"
