"""A worktree is looked at again before a step if anything of git changed in it."""

import subprocess
import time

import pytest

from crew.git.checkpoints.checkpoints import take_checkpoint
from crew.git.repository import commit_of, find_repository
from crew.git.worktrees.worktrees import ensure_worktree
from crew.runner.outside.worktree_care import Repaired, WorktreeCare
from repositories import lay_repository
from surroundings import own_home


@pytest.fixture
def tree(tmp_path, tmp_path_factory):
    with own_home(tmp_path_factory):
        lay_repository(tmp_path / "repo", {"a.txt": "a\n"})
        repo = find_repository(tmp_path / "repo")
        path = tmp_path / "trees" / "1"
        ensure_worktree(repo, path, branch="crew-1", base="main")
        yield path


@pytest.fixture
def care(tree):
    repo = find_repository(tree.parents[1] / "repo")
    care = WorktreeCare(repo)
    assert care.repair(tree, "crew-1") == Repaired(has_no_locks=True, is_taken_in=True)
    care.note_order(tree, "crew-1")
    return care


def _git(path, *args):
    subprocess.run(["git", *args], cwd=path, check=True, capture_output=True)


def _agents(tree):
    return tree.parents[1] / "repo/.git/crew/folders/1/repository"


CHANGES = {
    "a commit": lambda tree: _git(tree, "commit", "-q", "--allow-empty", "-m", "x"),
    "another branch": lambda tree: _git(tree, "checkout", "-q", "-b", "other"),
    "a staged file": lambda tree: (
        (tree / "a.txt").write_text("other\n"),
        _git(tree, "add", "a.txt"),
    ),
    "a lock": lambda tree: (_agents(tree) / "index.lock").touch(),
    "a lock of the branch": lambda tree: (_agents(tree) / "refs/heads/crew-1.lock").touch(),
    "a lock of a person": lambda tree: (
        tree.parents[1] / "repo/.git/refs/heads/crew-1.lock"
    ).touch(),
    "a person's commit": lambda tree: (
        _git(tree.parents[1] / "repo", "checkout", "-q", "crew-1"),
        _git(tree.parents[1] / "repo", "commit", "-q", "--allow-empty", "-m", "theirs"),
    ),
    "another .git": lambda tree: (tree / ".git").write_text("gitdir: elsewhere\n"),
    "a new file": lambda tree: (tree / "new.txt").touch(),
    "a broken HEAD": lambda tree: (_agents(tree) / "HEAD").write_text("x\n"),
    "no repository": lambda tree: _agents(tree).rename(tree.parent / "gone"),
}


def test_without_a_change_it_stays_in_order(care, tree):
    assert care.is_in_order(tree, "crew-1")


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_noticed(care, tree, change):
    change(tree)
    assert not care.is_in_order(tree, "crew-1")


def test_after_a_step_it_is_looked_at_whatever_the_files_say(care, tree):
    care.forget(tree)
    assert not care.is_in_order(tree, "crew-1")


def test_a_worktree_that_was_never_seen_is_not_in_order(care, tree):
    assert not WorktreeCare(care.repo).is_in_order(tree, "crew-1")


def test_linked_worktrees_are_always_looked_at(care, tree):
    path = tree.parent / "2"
    ensure_worktree(care.repo, path, branch="crew-2", base="main", kind="linked")
    care.repair(path, "crew-2")
    care.note_order(path, "crew-2")
    assert not care.is_in_order(path, "crew-2")


def test_a_commit_that_ends_while_crew_waits_for_its_lock_is_taken_in(care, tree):
    hooks = _agents(tree) / "slow-hooks"
    hooks.mkdir()
    hook = hooks / "reference-transaction"
    hook.write_text('#!/bin/sh\n[ "$1" != prepared ] || sleep 1\n')
    hook.chmod(0o755)
    (tree / "a.txt").write_text("late\n")
    _git(tree, "add", "a.txt")  # so that the commit holds no lock of the index
    args = ("git", "-c", f"core.hooksPath={hooks}", "commit", "-q", "-m", "late")
    with subprocess.Popen(args, cwd=tree):
        while not (_agents(tree) / "HEAD.lock").exists():
            time.sleep(0.01)
        repaired = care.repair(tree, "crew-1")
    kept = take_checkpoint(
        care.repo, tree, "1", label="step", at=1.0, is_taken_in=repaired.is_taken_in
    )
    assert not repaired.has_no_locks
    assert kept is None
    assert commit_of(care.repo, "crew-1") == find_head(tree)


def find_head(tree) -> str:
    args = ("git", "rev-parse", "HEAD")
    listed = subprocess.run(args, cwd=tree, capture_output=True, text=True, check=True)
    return listed.stdout.strip()
