"""Refs that only crew writes are deleted without git, by the same rules."""

import pytest

from crew.git import spawn_git
from crew.git.refs import Moved, advance, delete_ref, delete_refs, is_swapped
from crew.git.repository import ref_tip

MARK = "refs/crew/branches/crew-7"


@pytest.fixture
def head(person):
    person.git("update-ref", MARK, "HEAD")
    return person.git("rev-parse", "HEAD")


def test_a_ref_of_crew_is_deleted_without_git(repo, person, head, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(spawn_git, "run", None)
        delete_ref(repo, MARK, expected=head)
    assert ref_tip(repo, MARK) is None
    assert not (repo.common_dir / f"{MARK}.lock").exists()
    delete_ref(repo, MARK, expected=head)


def test_a_packed_ref_is_deleted_too(repo, person, head):
    person.git("pack-refs", "--all")
    delete_ref(repo, MARK, expected=head)
    assert ref_tip(repo, MARK) is None
    person.git("update-ref", MARK, "HEAD")
    person.git("pack-refs", "--all", "--no-prune")
    delete_ref(repo, MARK, expected=head)
    assert ref_tip(repo, MARK) is None


def test_a_ref_that_moved_stays(repo, person, head):
    other = person.commit({"a.txt": "2\n"}, "second")
    person.git("update-ref", MARK, other)
    with pytest.raises(Moved):
        delete_ref(repo, MARK, expected=head)
    assert ref_tip(repo, MARK) == other


def test_a_ref_that_moves_meanwhile_stays(repo, person, head, monkeypatch):
    other = person.commit({"a.txt": "2\n"}, "second")

    def claim_late(_lock, _content):
        person.git("update-ref", MARK, other)
        return True

    monkeypatch.setattr("crew.git.refs.claim_file", claim_late)
    with pytest.raises(Moved):
        delete_ref(repo, MARK, expected=head)
    assert ref_tip(repo, MARK) == other


def test_the_lock_of_another_process_is_respected(repo, head):
    (repo.common_dir / f"{MARK}.lock").touch()
    assert not _is_unlinked(repo, MARK, head)
    assert ref_tip(repo, MARK) == head
    assert (repo.common_dir / f"{MARK}.lock").exists()
