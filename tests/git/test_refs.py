"""Refs that only crew writes are deleted without git, by the same rules."""

import pytest

from crew.git import spawn_git
from crew.git.refs import Moved, _is_unlinked, advance, delete_ref, delete_refs, is_swapped
from crew.git.repository import ref_tip
from refusals import raises_code

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
    with raises_code(Moved, "moved"):
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
    lock = repo.common_dir / f"{MARK}.lock"
    lock.touch()
    assert not _is_unlinked(repo, MARK, head)
    assert ref_tip(repo, MARK) == head
    assert lock.exists()


def test_a_swap_that_fails_leaves_no_lock_and_the_old_commit(repo, person, head):
    ref = "refs/heads/crew-7"
    person.git("branch", "crew-7")
    other = person.commit({"a.txt": "2\n"}, "second")
    log = repo.common_dir / "logs" / ref
    log.unlink()
    log.mkdir()  # it cannot be written
    with pytest.raises(IsADirectoryError):
        is_swapped(repo, ref, to=other, expected=head)
    assert ref_tip(repo, ref) == head
    assert not (repo.common_dir / f"{ref}.lock").exists()
    log.rmdir()
    assert is_swapped(repo, ref, to=other, expected=head)  # without a log there is no line
    assert not log.exists()


def test_a_swap_adds_a_line_to_the_log_that_git_reads(repo, person, head):
    person.git("branch", "crew-7")
    other = person.commit({"a.txt": "2\n"}, "second")
    assert is_swapped(repo, "refs/heads/crew-7", to=other, expected=head)
    lines = person.git("log", "-g", "--format=%H %gs", "crew-7").splitlines()
    assert (lines[0], len(lines)) == (f"{other} crew", 2)


def test_a_move_that_is_done_already_is_no_failure(repo, person, head):
    other = person.commit({"a.txt": "2\n"}, "second")
    advance(repo, MARK, to=other, expected=head)
    advance(repo, MARK, to=other, expected=head)
    with pytest.raises(Moved) as moved:
        advance(repo, MARK, to=head, expected=head)
    assert (ref_tip(repo, MARK), moved.value.at) == (other, other)


def test_a_git_in_any_worktree_may_hold_the_lock_of_packed_refs(
    repo, person, tmp_path, monkeypatch
):
    person.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    person.git("branch", "gone")
    seen = []

    def clear(locks, *, places):
        seen.extend(places)
        locks[0].unlink()

    monkeypatch.setattr("crew.git.refs.clear_abandoned", clear)
    delete_refs(repo, {"refs/heads/gone": person.git("rev-parse", "main")})
    assert (seen, ref_tip(repo, "refs/heads/gone")) == ([], None)
    (repo.common_dir / "packed-refs.lock").touch()
    delete_refs(repo, {"refs/heads/gone": person.git("rev-parse", "main")})
    assert {repo.root, repo.common_dir, tmp_path / "side"} <= set(seen)
