"""Whether a commit may have brought a file, seen in the index without git if possible."""

import pytest

from crew.git.tracked_files import is_changing, is_tracked, may_be_tracked
from crew.git.worktrees.worktrees import ensure_worktree


def test_the_index_shows_what_is_tracked(repo, person, monkeypatch):
    assert is_tracked(repo.root, "a.txt", is_changing=False)
    assert is_tracked(repo.root, "sub/c.txt", is_changing=False)
    person.write("new.txt", "new\n")
    monkeypatch.setattr("crew.git.git_command.git", lambda *_args: pytest.fail("git ran"))
    assert not is_tracked(repo.root, "new.txt", is_changing=False)
    assert not may_be_tracked(repo.root, "c.txt/x")


def test_a_linked_worktree_has_an_index_and_a_lock_of_its_own(repo, tmp_path):
    tree = tmp_path / "tree"
    ensure_worktree(repo, tree, branch="crew-7", base="main", kind="linked")
    assert is_tracked(tree, "a.txt", is_changing=False)
    assert not is_changing(tree)
    (repo.common_dir / "worktrees" / "tree" / "index.lock").touch()
    assert (is_changing(tree), is_changing(repo.root)) == (True, False)


def test_a_folder_without_a_repository_tracks_nothing(tmp_path):
    assert not may_be_tracked(tmp_path, "a.txt")
    assert not is_changing(tmp_path)


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_an_index_whose_paths_are_not_spelled_out_may_have_any(repo, person, version):
    person.git("update-index", "--index-version", version)
    assert may_be_tracked(repo.root, "missing.txt") is (version == "4")
    assert not is_tracked(repo.root, "missing.txt", is_changing=False)


def test_an_index_that_cannot_be_read_may_have_any_path(repo):
    index = repo.common_dir / "index"
    index.unlink()
    assert not may_be_tracked(repo.root, "a.txt")
    index.mkdir()
    assert may_be_tracked(repo.root, "a.txt")


def test_while_the_index_changes_a_commit_to_come_counts(repo, person):
    person.git("branch", "later")
    later = person.commit({"later.txt": "x\n"})
    person.git("update-ref", "refs/crew/landed/main", later)
    person.git("reset", "-q", "--hard", "HEAD~1")
    assert not is_tracked(repo.root, "later.txt", is_changing=False)
    assert is_tracked(repo.root, "later.txt", is_changing=True)
    assert not is_tracked(repo.root, "never.txt", is_changing=True)
    person.git("rm", "-q", "--cached", "a.txt")
    assert is_tracked(repo.root, "a.txt", is_changing=True)
