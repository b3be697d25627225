"""A worktree is called untouched only when git itself would find nothing in it."""

import hashlib
import os
import shutil
import struct
import time
from types import SimpleNamespace

import pytest

from crew.git import spawn_git
from crew.git.commit_files import CheckedOut
from crew.git.task_repository import crew_index
from crew.git.worktrees import index_file
from crew.git.worktrees.clean_check import untouched_head
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.git.worktrees.worktrees import ensure_worktree, follow, state_of
from git.conftest import agents_git_dir
from git.people import Person


@pytest.fixture
def agent(repo, tmp_path, kind) -> Person:
    """Somebody who has just committed in a worktree of crew's."""
    tree = tmp_path / "trees" / "7"
    ensure_worktree(repo, tree, branch="crew-7", base="main", kind=kind)
    agent = Person(tree)
    agent.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    (tree / "link").symlink_to("a.txt")
    agent.commit({"new/file.txt": "new\n"})
    _let_time_pass(repo, agent)
    return agent


def _let_time_pass(repo, agent):
    """As if the files had been written a while before the index, as they are by slower people."""
    follow(repo, agent.path)
    for git_dir in _git_dirs(repo, agent):
        later = (git_dir / "index").stat().st_mtime_ns + 10**9
        os.utime(git_dir / "index", ns=(later, later))


def _git_dirs(repo, agent):
    both = {git_dir_for(repo, agent.path), agents_git_dir(repo, agent.path)}
    return [git_dir for git_dir in both if (git_dir / "index").exists()]


def _head(repo, agent):
    return untouched_head(agent.path, git_dir_for(repo, agent.path))


def test_a_worktree_whose_work_is_committed_is_untouched(repo, agent):
    assert _head(repo, agent) == CheckedOut(commit=agent.git("rev-parse", "HEAD"), branch="crew-7")
    agent.git("checkout", "-q", "--detach")
    state = state_of(repo, agent.path)
    assert (state.head, state.branch) == (agent.git("rev-parse", "HEAD"), None)


def test_no_process_is_started_for_it(repo, agent, monkeypatch):
    monkeypatch.setattr(spawn_git, "run", None)
    state = state_of(repo, agent.path)
    assert (state.branch, state.changed, state.unfinished) == ("crew-7", (), None)


@pytest.mark.parametrize("tick_s", [0.1, 600])
def test_files_as_young_as_the_index_are_compared_by_git_until_their_tick_is_over(
    repo, tmp_path, monkeypatch, tick_s
):
    monkeypatch.setattr(crew_index, "tick_ns", lambda found: tick_s * 10**9)
    tree = tmp_path / "trees" / "8"
    ensure_worktree(repo, tree, branch="crew-8", base="main")
    git_dir = git_dir_for(repo, tree)
    written_ns = (tree / "b.txt").stat().st_ctime_ns
    os.utime(git_dir / "index", ns=(written_ns, written_ns))
    assert untouched_head(tree, git_dir) is None
    time.sleep(0.2)
    assert state_of(repo, tree).changed == ()
    assert (untouched_head(tree, git_dir) is not None) is (tick_s < 1)
    (tree / "b.txt").write_text("c\n")  # as long as before
    os.utime(tree / "b.txt", ns=(written_ns, written_ns))
    assert state_of(repo, tree).changed == ("b.txt",)


def test_the_tick_is_the_longest_of_the_worktree_and_its_index(repo, agent):
    git_dir = git_dir_for(repo, agent.path)
    before_ns = (git_dir / "index").stat().st_mtime_ns
    coarse = SimpleNamespace(stat=lambda: SimpleNamespace(st_ctime_ns=2 * 10**9))
    crew_index.confirm_index(coarse, git_dir, at_ns=before_ns + 10**9)
    assert (git_dir / "index").stat().st_mtime_ns == before_ns
    crew_index.confirm_index(agent.path, git_dir, at_ns=before_ns + 10**9)
    assert (git_dir / "index").stat().st_mtime_ns == before_ns + 10**9


def test_an_unfinished_merge_is_seen_all_the_same(repo, agent):
    (agents_git_dir(repo, agent.path) / "MERGE_HEAD").write_text(agent.git("rev-parse", "main"))
    assert state_of(repo, agent.path).unfinished == "merge"


CHANGES = {
    "another text": lambda a: a.write("a.txt", "other\n"),
    "another text of the same length": lambda a: a.write("b.txt", "c\n"),
    "a file that may be run": lambda a: (a.path / "a.txt").chmod(0o755),
    "a file that may not": lambda a: (a.path / "run.sh").chmod(0o644),
    "a file less": lambda a: (a.path / "sub" / "c.txt").unlink(),
    "a folder less": lambda a: shutil.rmtree(a.path / "new"),
    "a file more": lambda a: a.write("more.txt", "more\n"),
    "a file more, deep down": lambda a: a.write("some/where/more.txt", "more\n"),
    "an ignored file": lambda a: a.write("sub/.gitignore", "*\n"),
    "another link": lambda a: ((a.path / "link").unlink(), (a.path / "link").symlink_to("b.txt")),
    "a link for a file": lambda a: (
        (a.path / "b.txt").unlink(),
        (a.path / "b.txt").symlink_to("a.txt"),
    ),
    "something staged": lambda a: (a.write("a.txt", "other\n"), a.git("add", "a.txt")),
    "a staged deletion": lambda a: a.git("rm", "-q", "b.txt"),
    "a deletion from the index": lambda a: a.git("rm", "-q", "--cached", "b.txt"),
    "a repository inside": lambda a: a.git("init", "-q", "inside"),
    "another commit below": lambda a: a.git("update-ref", "HEAD", "main"),
    "a file nobody looks at": lambda a: (
        a.git("update-index", "--assume-unchanged", "a.txt"),
        a.write("a.txt", "other\n"),
    ),
    "a file that is to be missing": lambda a: a.git("update-index", "--skip-worktree", "a.txt"),
    "a file that will be added": lambda a: (a.write("n", ""), a.git("add", "-N", "n")),
    "a conflict": lambda a: a.git("merge", "-q", _other(a), check=False),
    "an index of another kind": lambda a: a.git("update-index", "--index-version", "4"),
    "an index in two parts": lambda a: a.git("update-index", "--split-index"),
    "a broken index": lambda a: _spoil(_index(a)),
    "an index that is cut off": lambda a: _index(a).write_bytes(b"DIRC"),
    "no index": lambda a: _index(a).unlink(),
    "packed commits": lambda a: _main(a).git("repack", "-q", "-a", "-d"),
    "packed refs": lambda a: _main(a).git("pack-refs", "--all"),
}


def _main(agent):
    return Person(agent.path.parents[1] / "my prójects" / "repo")


def _index(agent):
    return agent.path / agent.git("rev-parse", "--git-path", "index")


def _other(agent):
    """A commit that says something else about the same file."""
    agent.git("checkout", "-q", "--detach", "main")
    commit = agent.commit({"new/file.txt": "theirs\n"})
    agent.git("checkout", "-q", "crew-7")
    return commit


def _spoil(index):
    raw = bytearray(index.read_bytes())
    raw[60] ^= 1
    index.write_bytes(raw)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_with_any_change_or_doubt_git_is_asked(repo, agent, change):
    change(agent)
    _let_time_pass(repo, agent)
    assert _head(repo, agent) is None


def test_a_file_as_new_as_the_index_is_compared_by_its_content(repo, agent, kind):
    """In a plain worktree git does that; of a task's own commit crew reads the content."""
    moment = (agent.path / "a.txt").stat().st_mtime_ns
    for git_dir in _git_dirs(repo, agent):
        os.utime(git_dir / "index", ns=(moment, moment))
    assert (_head(repo, agent) is None) == (kind == "linked")
    agent.write("a.txt", "other\n")
    assert _head(repo, agent) is None


def test_no_index_of_an_agent_hides_a_change(repo, tmp_path):
    tree = tmp_path / "trees" / "8"
    ensure_worktree(repo, tree, branch="crew-8", base="main")
    agent, theirs = Person(tree), agents_git_dir(repo, tree) / "index"
    agent.commit({"b.txt": "committed\n"})
    agent.write("a.txt", "other\n")
    _forge_numbers(theirs, tree, "a.txt")
    assert state_of(repo, tree).changed == ("a.txt",)
    agent.write("b.txt", "again\n")
    agent.git("commit", "-q", "-m", "again", "b.txt")
    agent.write("b.txt", "other\n")
    _forge_numbers(theirs, tree, "b.txt")
    assert state_of(repo, tree).changed == ("a.txt", "b.txt")


def test_a_filter_of_an_agent_hides_no_change(repo, tmp_path):
    tree = tmp_path / "trees" / "8"
    ensure_worktree(repo, tree, branch="crew-8", base="main")
    agent = Person(tree)
    agent.git("config", "filter.short.clean", "head -n 1")
    agent.commit({".gitattributes": "*.txt filter=short\n", "long.txt": "one\ntwo\n"})
    assert "long.txt" in state_of(repo, tree).changed


def _forge_numbers(index, tree, name):
    """Write the numbers of the changed file into the entry of the old one."""
    raw = bytearray(index.read_bytes())
    at = raw.index(name.encode() + b"\0") - 62
    found = (tree / name).stat()
    times = (*divmod(found.st_ctime_ns, 10**9), *divmod(found.st_mtime_ns, 10**9))
    raw[at : at + 16] = struct.pack(">4L", *times)
    raw[at + 20 : at + 24] = struct.pack(">L", found.st_ino & 0xFFFFFFFF)
    raw[at + 36 : at + 40] = struct.pack(">L", found.st_size)
    raw[-20:] = hashlib.sha1(raw[:-20]).digest()
    index.write_bytes(raw)


def test_many_files_are_left_to_git(repo, agent, monkeypatch):
    monkeypatch.setattr(index_file, "MOST_FILES", 3)
    assert _head(repo, agent) is None
