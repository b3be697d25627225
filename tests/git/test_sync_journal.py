"""The journal of a delivery lies where others can write: what it says is checked, then believed."""

import json
import os

import pytest

from crew.git.delivery.delivery import deliver, repair_sync
from crew.git.delivery.sync_journal import JOURNAL, LAST
from git.test_landing import deliver_and_die, land

UNKNOWN = "1" * 40


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside" / "crew-sync" / "a" / "precious"
    folder.mkdir(parents=True)
    (folder / "file").write_text("mine\n")
    return folder


def forged(repo, person, outside):
    """Journals that would make crew delete or change something outside the checkout."""
    tip = person.git("rev-parse", "HEAD")
    sound = {
        "token": "a" * 32,
        "path": str(person.path),
        "git_dir": str(repo.common_dir),
        "target": "main",
        "old": tip,
        "new": tip,
    }
    up = os.path.relpath(outside, repo.common_dir / "crew-sync")
    yield sound | {"token": up}
    yield sound | {"token": str(outside)}
    yield sound | {"token": ""}
    yield sound | {"git_dir": str(outside.parents[2]), "token": "a/precious"}
    yield sound | {"path": str(outside), "git_dir": str(outside.parents[2])}
    yield sound | {"old": UNKNOWN, "new": UNKNOWN}
    yield sound | {"old": "--output=/tmp/forged"}
    yield sound | {"target": 7}
    yield {**sound, "more": "x"}
    yield ["list"]


@pytest.mark.parametrize("name", [JOURNAL, LAST])
def test_a_forged_journal_deletes_nothing_and_stops_nothing(repo, person, outside, name):
    for number, journal in enumerate(forged(repo, person, outside)):
        (repo.common_dir / name).write_text(json.dumps(journal))
        commit = land(repo, person, {"a.txt": f"landed {number}\n"}, name=str(number))
        repair_sync(repo)
        assert deliver(repo, "main", hold_s=0).commit == commit
        assert (outside / "file").read_text() == "mine\n"
    assert person.git("status", "--porcelain") == ""


def test_a_journal_that_leads_through_a_link_deletes_nothing(repo, person, outside):
    token = "a" * 32
    outside.rename(outside.parent / token)
    (repo.common_dir / "crew-sync").symlink_to(outside.parent)
    tip = person.git("rev-parse", "HEAD")
    places = {"path": str(person.path), "git_dir": str(repo.common_dir)}
    text = json.dumps({"token": token, "target": "main", "old": tip, "new": tip} | places)
    (repo.common_dir / JOURNAL).write_text(text)
    repair_sync(repo)
    assert (outside.parent / token / "file").read_text() == "mine\n"


@pytest.mark.parametrize("garbage", [b"", b"{", b"\xff\0", b"[" * 10_000, b"7"])
def test_garbage_is_set_aside(repo, garbage):
    (repo.common_dir / JOURNAL).write_bytes(garbage)
    repair_sync(repo)
    assert not (repo.common_dir / JOURNAL).exists()
    (aside,) = repo.common_dir.glob(f"{JOURNAL}.set-aside-*")
    assert aside.read_bytes() == garbage


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_hangs_nothing(repo, make):
    make(repo.common_dir / JOURNAL)
    repair_sync(repo)
    assert not os.path.lexists(repo.common_dir / JOURNAL)


@pytest.mark.parametrize(
    "point", ["git.sync_place.after", "git.advance.after", "git.sync_install_index.after"]
)
@pytest.mark.parametrize("damage", ["crew-sync.json", "seen.json"])
def test_a_killed_delivery_whose_records_are_damaged_is_healed(repo, person, point, damage):
    commit = land(repo, person, {"a.txt": "landed\n", "new.txt": "new\n"}, remove=["sub/c.txt"])
    person.write("mine.txt", "not committed\n")
    assert deliver_and_die(person, point).returncode == -9
    (file,) = [*repo.common_dir.glob(damage), *repo.common_dir.glob(f"crew-sync/*/{damage}")]
    file.write_text("garbage")
    repair_sync(repo)
    assert not (repo.common_dir / "index.lock").exists()
    assert deliver(repo, "main", hold_s=0).state in {"delivered", "current", "waiting"}
    if damage == JOURNAL:
        assert person.git("rev-parse", "HEAD") == commit
        assert person.git("status", "--porcelain") == "?? mine.txt"
    assert (person.path / "mine.txt").read_text() == "not committed\n"
