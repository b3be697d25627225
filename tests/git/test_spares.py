"""A spare becomes a worktree like any other; one that nobody takes leaves nothing behind."""

import itertools

import pytest

from crew.git.branches import claim_branch
from crew.git.repository import commit_of
from crew.git.worktrees import spare_worktrees, worktree_admin
from crew.git.worktrees.worktree_list import worktree_paths
from crew.git.worktrees.worktrees import ensure_worktree, remove_worktree, state_of
from git.people import Person


@pytest.fixture
def trees(tmp_path):
    return tmp_path / "work trees"


@pytest.fixture
def spare(repo, trees):
    return spare_worktrees.make_spare(repo, trees, commit=commit_of(repo, "main"))


@pytest.fixture
def take(kind):
    def take(repo, spare, tree):
        assert claim_branch(repo, "crew-7", base=spare.commit)
        made = {"branch": "crew-7", "base": spare.commit, "is_new": True, "spare": spare}
        ensure_worktree(repo, tree, kind=kind, **made)
        return Person(tree)

    return take


def test_git_knows_nothing_of_a_spare(repo, spare, person):
    assert worktree_paths(repo) == {person.path: "main"}
    assert person.git("status", "--porcelain") == ""
    assert Person(spare.files).tree() == person.tree()


def test_a_spare_becomes_a_clean_worktree_with_its_branch(repo, take, spare, trees, person):
    agent = take(repo, spare, trees / "7")
    state = state_of(repo, agent.path)
    assert (state.branch, state.head, state.changed) == ("crew-7", spare.commit, ())
    assert worktree_paths(repo) == {person.path: "main", agent.path: "crew-7"}
    assert agent.tree() == person.tree()
    assert [entry.name for entry in trees.iterdir()] == ["7"]
    agent.commit({"a.txt": "work\n"})
    assert agent.git("status", "--porcelain") == ""
    assert person.git("fsck", "--strict") == ""


def test_a_spare_is_brought_to_a_newer_commit(repo, take, spare, trees, person):
    person.git("rm", "-q", "-r", "sub")
    newer = person.commit({"a.txt": "newer\n", "b.txt/is/a/folder.txt": "x\n"} | _without_b(person))
    agent = take(repo, spare_worktrees.brought_to(repo, spare, commit=newer), trees / "7")
    assert agent.tree() == person.tree()
    assert (state_of(repo, agent.path).head, state_of(repo, agent.path).changed) == (newer, ())


def _without_b(person):
    person.git("rm", "-q", "b.txt")
    return {}


@pytest.mark.parametrize("index_version", ["2", "4"])
def test_a_spare_goes_where_attributes_come_change_and_leave(repo, trees, person, index_version):
    """Their names are cut short in an index of version 4: `.gita` has the same beginning."""
    person.git("config", "index.version", index_version)
    commits = [
        commit_of(repo, "main"),
        person.commit({".gita": "\n", ".gitattributes": "*.txt eol=crlf\n"}),
        person.commit({".gitattributes": "*.txt text\n"}),
    ]
    person.git("rm", "-q", ".gitattributes")
    commits.append(person.commit({}))
    for before, after in itertools.pairwise(commits):
        spare = spare_worktrees.make_spare(repo, trees, commit=before)
        assert spare_worktrees.brought_to(repo, spare, commit=after) is None
        assert list(trees.iterdir()) == []


def test_a_spare_is_brought_along_where_attributes_stay(repo, take, trees, person):
    spare = spare_worktrees.make_spare(
        repo, trees, commit=person.commit({".gitattributes": "*.x text\n"})
    )
    newer = person.commit({"a.txt": "newer\n"})
    agent = take(repo, spare_worktrees.brought_to(repo, spare, commit=newer), trees / "7")
    assert agent.tree() == person.tree()


def test_a_worktree_whose_files_did_not_follow_its_git_dir_gets_them_again(
    repo, spare, trees, kind
):
    """Killed between the two: the next one knows of no spare."""
    assert claim_branch(repo, "crew-7", base=spare.commit)
    head = "ref: refs/heads/crew-7"
    worktree_admin.lay(repo, trees / "7", head=head, index=spare.index, kind=kind)
    ensure_worktree(repo, trees / "7", branch="crew-7", base="main", kind=kind)
    state = state_of(repo, trees / "7")
    assert (state.branch, state.head, state.changed) == ("crew-7", spare.commit, ())
    spare_worktrees.drop_spares(trees)
    assert [entry.name for entry in trees.iterdir()] == ["7"]


def test_a_spare_is_not_used_for_a_worktree_that_is_there(repo, spare, trees, kind):
    ensure_worktree(repo, trees / "7", branch="crew-7", base="main", kind=kind)
    Person(trees / "7").write("a.txt", "work\n")
    made = {"branch": "crew-7", "base": spare.commit, "is_new": True, "spare": spare}
    ensure_worktree(repo, trees / "7", kind=kind, **made)
    assert (trees / "7" / "a.txt").read_text() == "work\n"
    assert spare.files.is_dir()


def test_dropped_spares_are_gone_and_nothing_else_is(repo, spare, trees, kind):
    spare_worktrees.make_spare(repo, trees, commit=spare.commit)
    ensure_worktree(repo, trees / "7", branch="crew-7", base="main", kind=kind)
    spare_worktrees.drop_spares(trees)
    spare_worktrees.drop_spares(trees)
    assert [entry.name for entry in trees.iterdir()] == ["7"]
    remove_worktree(repo, trees / "7")


def test_there_are_no_spares_where_worktrees_hold_only_some_files(repo, person):
    assert spare_worktrees.is_possible(repo)
    person.git("sparse-checkout", "set", "--no-cone", "/a.txt")
    assert not spare_worktrees.is_possible(repo)
