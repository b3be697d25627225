"""What a killed git left in a worktree of crew goes, and nothing of what was done is lost."""

import os
import signal
import subprocess
import time

import pytest

from crew.git.worktrees import worktree_admin
from crew.git.worktrees.stale_locks import clear_stale_locks, locks_in, places_of
from crew.git.worktrees.worktrees import ensure_worktree, state_of
from crew.system.processes.git_processes import have_gits_ended
from git.conftest import agents_git_dir
from git.people import Person


@pytest.fixture
def tree(repo, tmp_path, kind):
    path = tmp_path / "work trees" / "7"
    ensure_worktree(repo, path, branch="crew-7", base="main", kind=kind)
    return path


@pytest.fixture
def agent(tree):
    """Whoever works in the worktree; a file of each kind is there to be changed."""
    return Person(tree)


@pytest.fixture
def git_dir(repo, tree):
    return agents_git_dir(repo, tree)


def clear(repo, tree):
    locks = locks_in(repo, tree, branch="crew-7")
    clear_stale_locks(repo, tree, locks)
    assert locks_in(repo, tree, branch="crew-7") == ()
    return sorted(lock.name for lock in locks)


def killed_after_the_ref_moved(agent, git_dir, *command):
    """As `git commit` leaves it: the branch has moved, the new index is still in its lock."""
    index = git_dir / "index"
    stale = index.read_bytes()
    agent.git(*command)
    index.rename(git_dir / "index.lock")
    index.write_bytes(stale)


def test_the_locks_of_a_worktree_and_its_branch_are_found_and_no_other(
    repo, tree, git_dir, person, kind
):
    ensure_worktree(repo, tree.with_name("8"), branch="crew-8", base="main", kind=kind)
    other = agents_git_dir(repo, tree.with_name("8"))
    mine = (
        "index.lock",
        "HEAD.lock",
        "ORIG_HEAD.lock",
        "next-index-4.lock",
        "refs/bisect/bad.lock",
    )
    (git_dir / "refs" / "bisect").mkdir(parents=True)
    for lock in mine:
        (git_dir / lock).touch()
    heads = repo.common_dir / "refs" / "heads"
    others = [repo.common_dir / "index.lock", repo.common_dir / "HEAD.lock", other / "index.lock"]
    others += [heads / "main.lock", heads / "crew-8.lock", repo.common_dir / "packed-refs.lock"]
    for lock in (heads / "crew-7.lock", *others):
        lock.touch()
    names = sorted([*(lock.rpartition("/")[2] for lock in mine), "crew-7.lock"])
    assert clear(repo, tree) == names
    assert all(lock.exists() for lock in others)
    Person(tree).commit({"works": "again"})
    assert locks_in(repo, person.path) == ()
    assert locks_in(repo, tree.with_name("nothing"), branch="crew-7") == ()


def test_a_worktree_that_somebody_else_made_is_left_alone(repo, person, tmp_path):
    theirs = tmp_path / "theirs"
    person.git("worktree", "add", "-q", str(theirs), "-b", "topic")
    (worktree_admin.git_dir_for(repo, theirs) / "index.lock").touch()
    assert locks_in(repo, theirs) == ()


def test_the_lock_of_a_branch_is_found_after_its_worktree_has_gone(repo, tmp_path):
    (repo.common_dir / "refs" / "heads" / "crew-9.lock").touch()
    (lock,) = locks_in(repo, tmp_path / "9", branch="crew-9")
    assert places_of(repo, tmp_path / "9", lock) == (tmp_path / "9", repo.root, repo.common_dir)


# Killed before the branch moved


@pytest.mark.parametrize(
    "locks",
    [
        ["index.lock"],
        ["HEAD.lock"],
        ["index.lock", "HEAD.lock", "refs/heads/crew-7.lock"],
        ["refs/heads/crew-7.lock"],
    ],
)
def test_a_commit_killed_before_its_branch_moved_can_be_made_again(
    repo, tree, agent, git_dir, locks
):
    agent.write("a.txt", "agent\n")
    agent.write("new.txt", "new\n")
    agent.git("add", "a.txt")
    before = agent.tree()
    for lock in locks:
        (git_dir / lock).parent.mkdir(parents=True, exist_ok=True)
        (git_dir / lock).touch()
        if lock.startswith("refs/"):
            (repo.common_dir / lock).touch()
    clear(repo, tree)
    assert agent.tree() == before
    assert agent.git("diff", "--cached", "--name-only") == "a.txt"
    agent.git("commit", "-q", "-am", "again")
    assert agent.git("show", "--name-only", "--format=") == "a.txt"
    assert state_of(repo, tree).changed == ("new.txt",)


def test_a_git_commit_that_is_really_killed_leaves_nothing_in_the_way(repo, tree, agent, git_dir):
    """It holds its lock while the editor is open; as long as it lives, that is not touched."""
    agent.write("a.txt", "agent\n")
    waits = tree.parent / "waits"
    dying = subprocess.Popen(
        ["git", "-c", f"core.editor=touch '{waits}'; sleep 60 #", "commit", "-q", "-a"],
        cwd=tree,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        give_up_at = time.monotonic() + 60
        while not waits.exists():
            assert time.monotonic() < give_up_at
            time.sleep(0.02)
        (lock,) = locks_in(repo, tree)
        assert lock.name == "index.lock"
        assert not have_gits_ended(places_of(repo, tree, lock), patience_s=0.1)
    finally:
        os.killpg(dying.pid, signal.SIGKILL)  # the editor too
        dying.wait()
    assert have_gits_ended(places_of(repo, tree, lock), patience_s=60)
    assert clear(repo, tree) == ["index.lock"]
    assert agent.commit() != agent.git("rev-parse", "main")
    assert agent.git("show", "HEAD:a.txt") == "agent"


# Killed after the branch moved


def test_a_commit_of_everything_is_finished(repo, tree, agent, git_dir):
    agent.write("a.txt", "agent\n")
    killed_after_the_ref_moved(agent, git_dir, "commit", "-q", "-am", "all")
    assert state_of(repo, tree).changed == ("a.txt",)
    clear(repo, tree)
    assert state_of(repo, tree).changed == ()


def test_a_first_commit_is_finished(repo, tree, agent, git_dir):
    agent.git("switch", "-q", "--orphan", "fresh")
    agent.write("a.txt", "agent\n")
    agent.git("add", "--intent-to-add", "a.txt")
    killed_after_the_ref_moved(agent, git_dir, "commit", "-q", "-a", "-m", "first")
    assert agent.git("status", "--porcelain") != ""
    clear(repo, tree)
    assert agent.git("status", "--porcelain") == ""


def test_a_commit_of_some_paths_is_finished_and_the_rest_stays_staged(repo, tree, agent, git_dir):
    agent.write("a.txt", "agent\n")
    agent.write("b.txt", "staged\n")
    agent.git("add", "b.txt")
    agent.write("b.txt", "later\n")
    killed_after_the_ref_moved(agent, git_dir, "commit", "-q", "-m", "some", "--", "a.txt")
    clear(repo, tree)
    assert agent.git("diff", "--cached", "--name-only") == "b.txt"
    assert agent.git("show", ":b.txt") == "staged"
    agent.git("commit", "-q", "-m", "the rest")
    assert agent.git("show", "HEAD:a.txt") == "agent"
    assert (tree / "b.txt").read_text() == "later\n"


def test_an_index_that_is_behind_is_brought_along_also_without_the_new_one(
    repo, tree, agent, git_dir
):
    """Otherwise the next commit would undo the last one."""
    agent.write("a.txt", "agent\n")
    agent.write("b.txt", "staged\n")
    agent.git("rm", "-q", "--cached", "sub/c.txt")
    agent.git("add", "a.txt")
    index = git_dir / "index"
    before = agent.git("rev-parse", "HEAD")
    agent.git("commit", "-q", "-m", "one")
    agent.git("add", "b.txt")
    moved = agent.git("rev-parse", "HEAD")
    agent.git("reset", "-q", "--soft", before)
    agent.git("reset", "-q", "--", "a.txt", "sub/c.txt")
    agent.git("update-ref", "refs/heads/crew-7", moved)
    (git_dir / "index.lock").touch()
    assert index.exists()
    clear(repo, tree)
    assert agent.git("diff", "--cached", "--name-only") == "b.txt"
    agent.git("commit", "-q", "-m", "two")
    assert agent.git("show", "HEAD:a.txt") == "agent"
    assert agent.git("ls-tree", "HEAD", "sub/c.txt") == ""
    assert (tree / "sub" / "c.txt").exists()


def test_what_was_staged_when_another_command_was_killed_stays_staged(repo, tree, agent, git_dir):
    agent.commit({"a.txt": "one\n"})
    agent.write("a.txt", "two\n")
    agent.git("add", "a.txt")
    (git_dir / "index.lock").write_bytes(b"DIRC, half written")
    clear(repo, tree)
    assert agent.git("diff", "--cached", "--name-only") == "a.txt"
    assert agent.git("show", ":a.txt") == "two"
