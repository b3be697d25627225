"""The work on a branch is described as git describes it, and usually without starting git."""

import os

import pytest

from crew.domain.kernel.errors import NotFound
from crew.git import commit_files, spawn_git
from crew.git.commit_files import read_commit
from crew.git.git_command import git
from crew.git.repository import commit_of
from crew.git.worktrees.branch_work import BranchWork, off_head, read_work
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.git.worktrees.worktrees import ensure_worktree, follow
from git.people import Person
from refusals import raises_code


@pytest.fixture(params=["own", "linked"])
def agent(repo, tmp_path, request) -> Person:
    tree = tmp_path / "trees" / "7"
    base = commit_of(repo, "main")
    ensure_worktree(repo, tree, branch="crew-7", base=base, kind=request.param)
    return Person(tree)


@pytest.fixture
def base(agent):
    return agent.git("rev-parse", "HEAD")


def _let_a_step_end(repo, agent):
    """As after a checkpoint: the commits are taken in, and the files are older than the index."""
    follow(repo, agent.path)
    index = git_dir_for(repo, agent.path) / "index"
    later = index.stat().st_mtime_ns + 10**9
    os.utime(index, ns=(later, later))


def _as_git_prints_it(agent, base):
    log = ("log", "--format=%h %s", "--abbrev=12", "-n", "20", f"{base}..HEAD")
    return BranchWork(commits=agent.git(*log), uncommitted=git(agent.path, "status", "--short"))


def test_committed_work_is_described_without_a_process(repo, agent, base, monkeypatch):
    for number in range(25):
        agent.commit({"x.txt": f"{number}\n"}, f"change {number}")
    _let_a_step_end(repo, agent)
    expected = _as_git_prints_it(agent, base)
    monkeypatch.setattr(spawn_git, "run", None)
    found = read_work(repo, agent.path, base=base)
    assert found == expected
    assert len(found.commits.splitlines()) == 20
    assert found.commits.partition("\n")[0].endswith(" change 24")


def test_commits_of_the_branch_that_are_not_checked_out_are_named(repo, agent, base):
    git_dir = git_dir_for(repo, agent.path)
    for number in range(25):
        agent.commit({"x.txt": f"{number}\n"}, f"change {number}")
    tip = agent.git("rev-parse", "HEAD")
    agent.git("switch", "-q", "--detach", base)
    listed = off_head(repo, git_dir, branch="crew-7", head=base)
    assert (len(listed), listed[0]) == (20, f"{tip[:12]} change 24")
    assert off_head(repo, git_dir, branch="crew-7", head=tip) == ()
    assert off_head(repo, git_dir, branch="crew-7", head="") == ()
    assert off_head(repo, git_dir, branch="missing", head=base) == ()


def test_a_new_branch_has_no_work(repo, agent, base, monkeypatch):
    _let_a_step_end(repo, agent)
    monkeypatch.setattr(spawn_git, "run", None)
    assert read_work(repo, agent.path, base=base) == BranchWork(commits="", uncommitted="")


MESSAGES = {
    "plain": b"one line\n",
    "a body": b"subject\n\nbody\n",
    "a subject on two lines": b"first \t\n second\n\nbody\n",
    "blank lines above": b"\n \n\nsubject\n",
    "nothing": b"",
    "no line end": b"subject",
    "carriage returns": b"subject\r\n\r\nbody\r\n",
    "not UTF-8": b"caf\xe9\n",
    "a form feed": b"one\x0ctwo\x0c\n\x0c\nthree\n",
    "names a parent": b"subject\n\nparent 0123456789012345678901234567890123456789\n",
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
def test_each_subject_is_the_one_git_prints(repo, agent, base, message, monkeypatch):
    file = agent.path.parent / "message"
    file.write_bytes(message)
    commit = agent.git("commit-tree", "-p", base, "-F", str(file), f"{base}^{{tree}}")
    agent.git("update-ref", "HEAD", commit)
    _let_a_step_end(repo, agent)
    printed = file.with_name("printed")
    agent.git("log", "--no-walk", "--format=%s", f"--output={printed}")
    monkeypatch.setattr(spawn_git, "run", None)
    found = read_work(repo, agent.path, base=base).commits
    subject = printed.read_bytes().removesuffix(b"\n")
    assert found.encode("utf-8", "surrogateescape") == commit[:12].encode() + b" " + subject
    assert read_commit(repo.common_dir, commit).parents == (base,)


def _merge(agent):
    agent.git("checkout", "-q", "-b", "side", "main")
    agent.commit({"side.txt": "1\n"}, "side")
    agent.git("checkout", "-q", "crew-7")
    agent.git("merge", "-q", "--no-ff", "-m", "a merge", "side")


def _other_encoding(agent):
    agent.write("x.txt", "other\n")
    message = agent.write("../message", "").with_name("message")
    message.write_bytes("café\n".encode("latin-1"))
    agent.git("-c", "i18n.commitEncoding=latin1", "commit", "-qaF", str(message))


UNUSUAL = {
    "a changed file": lambda a: a.write("a.txt", "other\n"),
    "a new file": lambda a: a.write("new.txt", "new\n"),
    "a merge": _merge,
    "a reset to before the base": lambda a: a.git("reset", "-q", "--hard", "HEAD~2"),
    "another history": lambda a: (
        a.git("checkout", "-q", "--orphan", "fresh"),
        a.git("commit", "-q", "-m", "root"),
    ),
    "a detached HEAD": lambda a: a.git("checkout", "-q", "--detach"),
    "packed commits": lambda a: (a.git("gc", "-q"), a.git("pack-refs", "--all")),
    "a text in another encoding": _other_encoding,
    "a long message": lambda a: a.git("commit", "-q", "--allow-empty", "-m", "many words " * 9000),
}


@pytest.mark.parametrize("change", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_unusual_work_is_described_as_git_does(repo, agent, change):
    agent.commit({"x.txt": "1\n"}, "before the base")
    base = agent.commit({"x.txt": "2\n"}, "the base")
    follow(repo, agent.path)
    agent.commit({"x.txt": "3\n"}, "after the base")
    change(agent)
    assert read_work(repo, agent.path, base=base) == _as_git_prints_it(agent, base)


def test_git_reads_a_long_line_of_commits(repo, agent, base, monkeypatch):
    for number in range(4):
        agent.commit({"x.txt": f"{number}\n"}, f"change {number}")
    monkeypatch.setattr(commit_files, "MOST_READ", 3)
    assert (
        commit_files.read_line(repo.common_dir, base=base, head=agent.git("rev-parse", "HEAD"))
        is None
    )
    assert read_work(repo, agent.path, base=base) == _as_git_prints_it(agent, base)


def test_a_commit_that_arrives_later_is_read_then(repo, agent, base):
    commit = agent.commit({"x.txt": "1\n"}, "later")
    follow(repo, agent.path)
    file = repo.common_dir / "objects" / commit[:2] / commit[2:]
    away = file.rename(file.with_name("away"))
    assert read_commit(repo.common_dir, commit) is None
    away.rename(file)
    assert read_commit(repo.common_dir, commit).subject == "later"


def test_without_a_base_only_changes_are_described(repo, agent):
    agent.write("new.txt", "new\n")
    assert read_work(repo, agent.path, base="") == BranchWork(commits="", uncommitted="?? new.txt")


def test_another_repository_under_the_name_of_the_worktree_is_not_read(repo, agent, base, tmp_path):
    agent.commit({"x.txt": "1\n"}, "of the task")
    other = Person(tmp_path / "other")
    other.path.mkdir()
    other.git("init", "-q")
    other.commit({"y.txt": "1\n"}, "of another repository")
    (agent.path / ".git").write_text(f"gitdir: {other.path / '.git'}\n")
    assert read_work(repo, agent.path, base=base).commits.endswith(" of the task")
    with raises_code(NotFound, "not_found", "other"):
        read_work(repo, other.path, base=base)
