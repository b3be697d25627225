"""A database with damaged pages: each command names the remedy, and the remedy works."""

import random

import pytest

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
