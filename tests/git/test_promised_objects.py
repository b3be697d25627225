"""In a partial clone the person's git fetches what commits lack, and agents cause no fetch."""

import os
import shutil
from pathlib import Path

import pytest

from crew.domain.kernel.names import landed_ref
from crew.git.delivery.delivery import deliver
from crew.git.git_command import ask, git
from crew.git.merges.merges import Merged, merge
from crew.git.promised_objects import NotFetched
from crew.git.repository import Repository, commit_of, find_repository
from crew.git.task_repository.take_in import NotTakenIn
from crew.git.worktrees.spare_worktrees import make_spare
from crew.git.worktrees.worktrees import ensure_detached, ensure_worktree, state_of
from git.conftest import agents_git_dir
from git.people import Person
from refusals import raises_code
from warm import warm_python


@pytest.fixture
def far(person) -> Person:
    """The remote: a file that only its history has, and one on a branch of its own."""
    person.git("config", "uploadpack.allowFilter", "true")
    person.commit({"old.txt": "once\n", "deep/er/x.txt": "x\n"})
    person.git("rm", "-q", "old.txt")
    person.commit({"a.txt": "a1\na2\nnew\n"})
    person.git("switch", "-q", "-c", "side")
    person.commit({"side.txt": "side\n", "b.txt": "side\n"})
    person.git("switch", "-q", "main")
    return person


@pytest.fixture(params=["blob:none", "tree:0"])
def ann(far, tmp_path, request, marker) -> Person:
    """Ann's partial clone, without a checkout. Each fetch leaves a line in `marker`."""
    path = tmp_path / "clone"
    url = f"file://{far.path}"
    Person(tmp_path).git(
        "clone", "-q", "--no-checkout", f"--filter={request.param}", url, str(path)
    )
    ann = Person(path)
    script = tmp_path / "upload-pack"
    script.write_text(f"#!/bin/sh\necho fetched >> '{marker}'\nexec git upload-pack \"$@\"\n")
    script.chmod(0o755)
    ann.git("config", "remote.origin.uploadpack", str(script))
    return ann


@pytest.fixture
def clone(ann) -> Repository:
    return find_repository(ann.path)


def fetches(marker) -> int:
    return len(marker.read_text().split()) if marker.exists() else 0


def missing(repo, *revs) -> int:
    """How many objects of these revisions are not here."""
    listed = git(repo.common_dir, "rev-list", "--objects", "--missing=print", *revs)
    return len([line for line in listed.splitlines() if line.startswith("?")])


def test_a_worktree_s_files_are_fetched_before_it_is_made(clone, tmp_path, marker, kind):
    ensure_worktree(clone, tmp_path / "7", branch="crew-7", base="main", kind=kind)
    assert Person(tmp_path / "7").tree()["deep/er/x.txt"] == b"x\n"
    assert state_of(clone, tmp_path / "7").changed == ()
    assert 1 <= fetches(marker) <= 3
    before = fetches(marker)
    ensure_worktree(clone, tmp_path / "8", branch="crew-8", base="main", kind=kind)
    assert fetches(marker) == before
    assert missing(clone, "main") >= 1


def test_a_spare_is_made_too(clone, tmp_path):
    spare = make_spare(clone, tmp_path, commit=commit_of(clone, "main"))
    assert (spare.files / "a.txt").read_text() == "a1\na2\nnew\n"


def test_an_agent_works_merges_and_lands_with_files_that_were_never_here(
    ann, clone, tmp_path, marker
):
    ensure_worktree(clone, tmp_path / "7", branch="crew-7", base="main")
    agent = Person(tmp_path / "7")
    agent.commit({"b.txt": "b\nagent\n", "new.txt": "new\n"})
    head = state_of(clone, agent.path).head
    done = merge(clone, onto=commit_of(clone, "main"), head=head, message="m", at=1)
    assert isinstance(done, Merged)
    ensure_detached(clone, tmp_path / "gate", done.commit)
    assert (tmp_path / "gate" / "b.txt").read_text() == "b\nagent\n"
    git(clone.common_dir, "update-ref", landed_ref("main"), done.commit)
    ann.git("checkout", "-q", "main")
    assert deliver(clone, "main", hold_s=0).state == "delivered"
    assert (ann.path / "b.txt").read_text() == "b\nagent\n"
    assert ann.git("status", "--porcelain") == ""


def test_a_merge_with_a_person_s_branch_that_was_never_checked_out(clone, tmp_path):
    side, main = commit_of(clone, "origin/side"), commit_of(clone, "main")
    done = merge(clone, onto=main, head=side, message="m", at=1, is_persons=True)
    assert isinstance(done, Merged)
    ensure_detached(clone, tmp_path / "gate", done.commit)
    assert (tmp_path / "gate" / "side.txt").read_text() == "side\n"
    ensure_detached(clone, tmp_path / "review", side)
    assert (tmp_path / "review" / "b.txt").read_text() == "side\n"


def test_a_remote_that_cannot_be_reached_is_named_and_tried_again(far, clone, tmp_path):
    far.path.rename(far.path.with_name("away"))
    for _ in range(2):
        with raises_code(NotFetched, "promised_objects_missing", "origin") as refused:
            ensure_worktree(clone, tmp_path / "7", branch="crew-7", base="main")
    assert f"git -C {clone.root} fetch origin" in refused.value.hint
    assert not (tmp_path / "7").exists()
    far.path.with_name("away").rename(far.path)
    ensure_worktree(clone, tmp_path / "7", branch="crew-7", base="main")
    assert state_of(clone, tmp_path / "7").changed == ()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_fetch_that_was_killed_is_made_again(clone, tmp_path, when):
    story = (
        "import sys; from pathlib import Path\n"
        "from crew.git.repository import find_repository\n"
        "from crew.git.worktrees.worktrees import ensure_worktree\n"
        "repo = find_repository(Path(sys.argv[1]))\n"
        "ensure_worktree(repo, Path(sys.argv[2]), branch='crew-7', base='main')\n"
    )
    for crash_at, code in ((f"git.fetch_promised.{when}", -9), ("", 0)):
        env = {**os.environ, "CREW_CRASH_AT": crash_at}
        argv = ["-c", story, str(clone.root), str(tmp_path / "7")]
        assert warm_python().run(argv, cwd=Path.cwd(), env=env).returncode == code
    assert state_of(clone, tmp_path / "7").changed == ()


# Agents cause no fetch


def plain(agent, blob):
    del agent, blob


def many(agent, blob):
    del blob
    for number in range(600):
        agent.write(f"many/{number}.txt", f"{number}\n")
    agent.git("add", "-A")


@pytest.mark.parametrize(
    ("more", "name"), [(plain, "old.txt"), (plain, "umläut.txt"), (many, "old.txt")]
)
def test_a_commit_that_names_an_object_of_the_remote_is_refused_and_nothing_is_fetched(
    far, clone, marker, more, name
):
    tmp_path = far.path.parent
    blob = far.git("rev-parse", "main~1:old.txt")
    ensure_worktree(clone, tmp_path / "7", branch="crew-7", base="main")
    agent, before = Person(tmp_path / "7"), fetches(marker)
    more(agent, blob)
    agent.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    tree = agent.git("write-tree", "--missing-ok")
    head = agent.git("commit-tree", "-p", "HEAD", "-m", "theirs", tree)
    agent.git("update-ref", "refs/heads/crew-7", head)
    with pytest.raises(NotTakenIn):
        state_of(clone, agent.path)
    assert commit_of(clone, "crew-7") == commit_of(clone, "main")
    assert fetches(marker) == before
    assert ask(clone.common_dir, "cat-file", "-e", blob).code != 0


def test_a_promising_remote_in_the_agent_s_own_settings_is_not_asked(far, clone, tmp_path, marker):
    ensure_worktree(clone, tmp_path / "7", branch="crew-7", base="main")
    agent, before = Person(tmp_path / "7"), fetches(marker)
    for key, value in (("url", f"file://{far.path}"), ("promisor", "true")):
        agent.git("config", f"remote.evil.{key}", value)
    (agents_git_dir(clone, agent.path) / "objects" / "pack" / "x.promisor").touch()
    head = agent.commit({"a.txt": "mine\n"})
    assert state_of(clone, agent.path).head == head
    assert fetches(marker) == before


def test_a_whole_repository_asks_nobody(repo, tmp_path, monkeypatch):
    monkeypatch.setattr("crew.git.promised_objects.ask", None)
    ensure_worktree(repo, tmp_path / "7", branch="crew-7", base="main")
    shutil.rmtree(tmp_path / "7")
    ensure_detached(repo, tmp_path / "gate", commit_of(repo, "main"))
