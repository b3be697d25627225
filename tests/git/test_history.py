"""Histories that are read without git: the answer is git's own, or there is none."""

import random
import subprocess

import pytest

from crew.git import commit_files, spawn_git
from crew.git.commit_files import has_tree, is_in_history
from crew.git.merges.merges import contains, is_readable

COMMITS = 25


def _random_history(person, seed):
    """Commits with none, one or two parents among those before them."""
    chance, made = random.Random(seed), list[str]()
    tree = person.git("rev-parse", "HEAD^{tree}")
    for number in range(COMMITS):
        parents = chance.sample(made[-8:], k=min(len(made), chance.choice((0, 1, 1, 1, 2))))
        words = [word for parent in parents for word in ("-p", parent)]
        made.append(person.git("commit-tree", tree, *words, "-m", f"{seed} {number}"))
    return made, chance


def _is_ancestor(person, ancestor, descendant):
    args = ("git", "merge-base", "--is-ancestor", ancestor, descendant)
    return subprocess.run(args, cwd=person.path, check=False).returncode == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_answer_is_that_of_git(repo, person, seed):
    made, chance = _random_history(person, seed)
    for _ in range(40):
        pair = {"ancestor": chance.choice(made), "descendant": chance.choice(made)}
        assert is_in_history(repo.common_dir, **pair) == _is_ancestor(person, **pair)


def test_packed_commits_are_left_to_git(repo, person):
    first = person.git("rev-parse", "HEAD")
    second = person.commit({"a.txt": "2\n"}, "second")
    person.git("gc", "-q")
    commit_files._read.cache_clear()
    third = person.commit({"a.txt": "3\n"}, "third")
    ask = repo.common_dir
    assert is_in_history(ask, ancestor=first, descendant=third) is None
    assert contains(repo, ancestor=first, descendant=third)
    assert is_in_history(ask, ancestor=third, descendant=first) is None
    assert is_in_history(ask, ancestor=third, descendant=second) is False
    assert not has_tree(ask, second)
    assert is_readable(repo, second)


def test_a_long_history_is_left_to_git(repo, person, monkeypatch):
    first = person.git("rev-parse", "HEAD")
    for number in range(4):
        person.commit({"a.txt": f"{number}\n"}, f"{number}")
    tip = person.git("rev-parse", "HEAD")
    monkeypatch.setattr(commit_files, "MOST_READ", 2)
    assert is_in_history(repo.common_dir, ancestor=first, descendant=tip) is None
    assert contains(repo, ancestor=first, descendant=tip)


def test_a_near_history_needs_no_git(repo, person, monkeypatch):
    first = person.git("rev-parse", "HEAD")
    tip = person.commit({"a.txt": "2\n"}, "second")
    monkeypatch.setattr(spawn_git, "run", None)
    assert contains(repo, ancestor=first, descendant=tip)
    assert not contains(repo, ancestor=tip, descendant=first)
    assert is_readable(repo, tip)


def test_a_commit_without_its_tree_is_not_readable(repo, person):
    tip = person.commit({"a.txt": "2\n"}, "second")
    tree = person.git("rev-parse", "HEAD^{tree}")
    (repo.common_dir / "objects" / tree[:2] / tree[2:]).unlink()
    assert not is_readable(repo, tip)
