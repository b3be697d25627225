"""Which checkout has a branch, read from files: the main one, a linked worktree, or none."""

from crew.domain.kernel.errors import Conflict
from crew.git.repository import find_repository
from crew.git.task_repository.branch_holders import checked_out, worktree_with
from git.people import Person
from refusals import raises_code


def test_a_branch_is_found_in_the_main_checkout_and_in_linked_worktrees(repo, person, tmp_path):
    person.git("branch", "free")
    person.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    assert worktree_with(repo, "refs/heads/main") == repo.root
    assert worktree_with(repo, "refs/heads/side") == tmp_path / "side"
    assert worktree_with(repo, "refs/heads/free") is None
    person.git("switch", "-q", "--detach")
    assert worktree_with(repo, "refs/heads/main") is None


def test_a_bare_repository_holds_no_branch(person, tmp_path):
    person.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    bare = find_repository(tmp_path / "bare.git")
    assert worktree_with(bare, "refs/heads/main") is None
    Person(tmp_path / "bare.git").git("worktree", "add", "-q", str(tmp_path / "w"), "main")
    assert worktree_with(bare, "refs/heads/main") == tmp_path / "w"


def test_the_refusal_names_the_branch_and_its_holder(tmp_path):
    with raises_code(Conflict, "branch_checked_out", "side", str(tmp_path)):
        raise checked_out("side", tmp_path)
