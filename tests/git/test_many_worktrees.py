"""Fifty worktrees at once: no lock error reaches anybody, and nothing half-made stays."""

import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from crew.git.branches import claim_branch
from crew.git.repository import commit_of, find_repository
from crew.git.worktrees.excludes import exclude_in_worktree
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.git.worktrees.worktree_list import worktree_paths
from crew.git.worktrees.worktrees import ensure_worktree, remove_worktree, state_of
from git.people import Person

COUNT = 50
KILLED = 5
SEED = int(os.environ.get("CREW_SEED", time.time_ns()))


def make(repo, folder, number, base, kind):
    """A task's worktree as crew makes it, with a pattern of its own."""
    path, branch = folder / str(number), f"crew-{number}"
    is_new = claim_branch(repo, branch, base=base)
    ensure_worktree(repo, path, branch=branch, base=base, is_new=is_new, kind=kind)
    exclude_in_worktree(repo, path, [f"/own-{number}"])
    return path


MAKE_SOME = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from crew.git.repository import find_repository
from git.test_many_worktrees import make

repo, folder, base = find_repository(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
kind, numbers = sys.argv[4], sys.argv[5:]
with ThreadPoolExecutor(len(numbers)) as pool:
    list(pool.map(lambda number: make(repo, folder, number, base, kind), numbers))
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "work trees"


def check_all(repo, person, folder, kind, numbers):
    base = commit_of(repo, "main")
    expected = {folder / str(number): f"crew-{number}" for number in numbers}
    assert worktree_paths(repo) == {person.path: "main", **expected}
    assert sorted(entry.name for entry in folder.iterdir()) == sorted(map(str, numbers))
    for number in numbers:
        agent = Person(folder / str(number))
        assert set(agent.tree()) == {"a.txt", "b.txt", "sub/c.txt"}
        agent.write(f"own-{number}", "x")
        agent.write(f"own-{number}-not", "x")
        state = state_of(repo, agent.path)
        assert (state.head, state.changed) == (base, (f"own-{number}-not",))
    common = repo.common_dir
    assert [*common.rglob("*.lock")] == [p for p in common.rglob("*.lock") if p.name == "crew.lock"]
    assert list(common.glob("crew-*new-*")) + list(common.glob("crew-gone-*")) == []
    assert person.git("status", "--porcelain") == ""
    included = person.git("config", "--get-all", "include.path", check=False)
    assert included == ("info/crew.config" if kind == "linked" else "")
    person.git("fsck", "--strict", "--no-dangling")


def test_fifty_made_at_once_are_all_whole(repo, person, folder, kind):
    base = commit_of(repo, "main")
    with ThreadPoolExecutor(COUNT) as pool:
        list(pool.map(lambda number: make(repo, folder, number, base, kind), range(COUNT)))
    check_all(repo, person, folder, kind, range(COUNT))


def test_the_same_one_made_many_times_at_once_is_made_once(repo, person, folder, kind):
    base = commit_of(repo, "main")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: make(repo, folder, 1, base, kind), range(16)))
    check_all(repo, person, folder, kind, [1])


def test_makers_killed_at_random_leave_nothing_that_the_next_do_not_heal(
    repo, person, folder, kind
):
    chance = random.Random(SEED)
    base = commit_of(repo, "main")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def start(numbers):
        argv = [sys.executable, "-c", MAKE_SOME, str(person.path), str(folder), base, kind]
        pipe = subprocess.PIPE
        return subprocess.Popen([*argv, *map(str, numbers)], env=env, stderr=pipe, text=True)

    def numbers_of(maker):
        return range(maker * 5, maker * 5 + 5)

    makers = [start(numbers_of(maker)) for maker in range(KILLED)]
    whole = start(range(25, 30))
    for maker in makers:
        time.sleep(chance.uniform(0.05, 0.4))  # nothing is waited for: any moment will do
        maker.kill()
        maker.communicate()
    _, said = whole.communicate()
    assert whole.returncode == 0, f"CREW_SEED={SEED}\n{said}"
    again = start(range(30))
    _, said = again.communicate()
    assert again.returncode == 0, f"CREW_SEED={SEED}\n{said}"
    check_all(repo, person, folder, kind, range(30))


def test_the_files_of_a_worktree_that_is_gone_go_with_the_next_one(repo, person, folder, kind):
    base = commit_of(repo, "main")
    gone = make(repo, folder, 1, base, kind)
    git_dir = git_dir_for(repo, gone)
    remove_worktree(repo, gone)
    make(repo, folder, 2, base, kind)
    assert not git_dir.exists()
    assert not (repo.common_dir / "info" / "crew" / git_dir.name).exists()
    if kind == "linked":
        config = (repo.common_dir / "info" / "crew.config").read_text()
        assert f"worktrees/{git_dir.name}" not in config


def test_a_bare_repository_and_its_worktrees_go_on_working(repo, person, folder, kind, tmp_path):
    person.git("clone", "-q", "--bare", str(person.path), str(tmp_path / "bare.git"))
    bare = Person(tmp_path / "bare.git")
    theirs = find_repository(bare.path)
    agent = Person(make(theirs, folder, 1, commit_of(theirs, "main"), kind))
    agent.write("own-1", "x")
    assert agent.git("status", "--porcelain") == ""
    assert bare.git("rev-parse", "--is-bare-repository") == "true"
