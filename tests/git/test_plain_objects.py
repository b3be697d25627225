"""Plain commits of an agent are taken in without git, and whatever is unusual is left to git."""

import os
import subprocess

import pytest

from crew.git import spawn_git
from crew.git.checkpoints.checkpoints import take_checkpoint
from crew.git.refs import is_swapped
from crew.git.repository import commit_of
from crew.git.task_repository import long_paths
from crew.git.task_repository.plain_objects import (
    NotPlain,
    plain_commit,
    plain_entries,
    take_in_plain,
)
from crew.git.task_repository.take_in import NotTakenIn
from crew.git.worktrees.worktrees import ensure_worktree, follow
from git.conftest import agents_git_dir
from git.people import Person

ID = bytes(range(20))


@pytest.fixture
def agent(repo, tmp_path) -> Person:
    tree = tmp_path / "trees" / "7"
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    return Person(tree)


def taken(repo, agent, commit=None):
    objects = agents_git_dir(repo, agent.path) / "objects"
    head = commit or agent.git("rev-parse", "HEAD")
    return take_in_plain(repo, objects, head, known=commit_of(repo, "crew-7"))


def test_the_commits_of_a_step_are_taken_in_without_a_process(repo, agent, monkeypatch):
    agent.commit({"a.txt": "mine\n", "new/deep/file.txt": "new\n", ".gitignore": "*.o\n"})
    agent.git("mv", "b.txt", "moved.txt")
    head = agent.commit({"run.sh": "#!/bin/sh\n"})
    with monkeypatch.context() as patch:
        patch.setattr(spawn_git, "run", None)
        follow(repo, agent.path)
    person = Person(repo.root)
    assert person.git("rev-parse", "crew-7") == head
    assert person.git("show", "crew-7:new/deep/file.txt") == "new"
    assert person.git("diff", "--name-only", head, "crew-7") == ""
    person.git("fsck", "--strict", "--no-dangling")
    assert f"{head} crew " in (repo.common_dir / "logs/refs/heads/crew-7").read_text()


def test_a_kill_between_two_objects_leaves_none_without_its_parts(repo, agent, monkeypatch):
    head = agent.commit({"new/deep/file.txt": "new\n"})
    stored = []

    def full_disk(fresh, file):
        if len(stored) == 2:
            raise OSError
        stored.append(file)
        os.replace(fresh, file)  # noqa: PTH105 - as there

    with monkeypatch.context() as patch:
        patch.setattr("crew.system.atomic_files.put_in_place", full_disk)
        with pytest.raises(OSError):  # noqa: PT011 - the one above
            taken(repo, agent)
    Person(repo.root).git("fsck", "--strict", "--no-dangling")
    assert not list((repo.common_dir / "objects").rglob("tmp_obj_*"))
    assert taken(repo, agent)
    assert commit_of(repo, head) == head


UNUSUAL = {
    "a name beyond ASCII": lambda a: a.commit({"ä.txt": "x\n"}),
    "modules": lambda a: a.commit({".gitmodules": "[x]\n"}),
    "long attributes": lambda a: a.commit({".gitattributes": "x" * 3000}),
    "a merge": lambda a: (
        a.git("checkout", "-qb", "other"),
        a.commit({"o.txt": "o\n"}),
        a.git("checkout", "-q", "crew-7"),
        a.commit({"m.txt": "m\n"}),
        a.git("merge", "-q", "--no-edit", "other"),
    ),
    "a history of its own": lambda a: (
        a.git("checkout", "-q", "--orphan", "fresh"),
        a.commit({"o.txt": "o\n"}),
    ),
    "packed objects": lambda a: (a.commit({"o.txt": "o\n"}), a.git("gc", "-q")),
    "another header": lambda a: a.git(
        "-c", "i18n.commitEncoding=latin1", "commit", "-q", "--allow-empty", "-m", "x"
    ),
    "a commit below": lambda a: a.git("reset", "-q", "--hard", "HEAD^"),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_whatever_is_unusual_is_left_to_git(repo, agent, name):
    agent.commit(message="first")
    follow(repo, agent.path)
    UNUSUAL[name](agent)
    before = commit_of(repo, "crew-7")
    assert not taken(repo, agent)
    assert commit_of(repo, "crew-7") == before


def test_a_file_that_only_a_checkpoint_has_stored_is_checked_all_the_same(repo, agent):
    agent.write("sub/.gitmodules", "[x]\n")
    take_checkpoint(repo, agent.path, "7", label="step", at=1.0)
    agent.commit()
    assert not taken(repo, agent)


def _object(agent, kind, content):
    args = ["git", "hash-object", "-w", "--literally", "-t", kind, "--stdin"]
    made = subprocess.run(args, cwd=agent.path, input=content, capture_output=True, check=True)
    return made.stdout.decode().strip()


def _commit_of(agent, *lines):
    """A commit on top of HEAD with a tree of these lines: mode, name and object."""
    raw = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(at) for mode, name, at in lines)
    return agent.git("commit-tree", "-p", "HEAD", "-m", "x", _object(agent, "tree", raw))


def test_an_object_in_the_place_of_another_kind_is_left_to_git(repo, agent):
    blob = _object(agent, "blob", b"x\n")
    tree = _object(agent, "tree", b"100644 x\0" + bytes.fromhex(blob))
    lines = [("40000", "a", tree), ("100644", "b", blob)]
    assert taken(repo, agent, _commit_of(agent, *lines))
    for wrong in (("100644", "c", tree), ("40000", "c", blob)):
        assert not taken(repo, agent, _commit_of(agent, *lines, wrong))


def _nested(agent, tree, names):
    for name in reversed(names):
        tree = agent.git("mktree", input=f"040000 tree {tree}\t{name}\n")
    return tree


def test_a_path_too_long_for_a_checkout_is_refused_also_through_a_tree_in_two_places(repo, agent):
    blob = agent.git("hash-object", "-w", "--stdin", input="x\n")
    leaf = agent.git("mktree", input=f"100644 blob {blob}\t{'n' * 250}\n")
    deep = _nested(agent, leaf, ["d" * 250] * 3)
    longer = _nested(agent, deep, ["e" * 250])
    tree = agent.git("mktree", input=f"040000 tree {deep}\ta\n040000 tree {longer}\tb\n")
    head = agent.git("commit-tree", tree, "-p", "HEAD", "-m", "long")
    assert not taken(repo, agent, head)
    agent.git("reset", "-q", "--soft", head)
    with pytest.raises(NotTakenIn, match="too long for a checkout"):
        follow(repo, agent.path)
    assert commit_of(repo, "crew-7") == commit_of(repo, "main")


def test_a_path_that_landed_already_is_in_the_way_of_no_task(repo, agent, monkeypatch):
    monkeypatch.setattr(long_paths, "LONGEST_PATH", 3)
    head = agent.commit({"é": "named so that git checks it\n"})
    follow(repo, agent.path)
    assert commit_of(repo, "crew-7") == head


def test_a_small_commit_that_stands_for_any_number_of_files_is_refused(repo, agent, monkeypatch):
    monkeypatch.setattr(long_paths, "MOST_LISTED", 100_000)
    blob = agent.git("hash-object", "-w", "--stdin", input="x\n")
    tree = agent.git("mktree", input=f"100644 blob {blob}\tfile\n")
    for _ in range(9):
        tree = agent.git("mktree", input="".join(f"040000 tree {tree}\t{n}\n" for n in range(10)))
    agent.git("reset", "-q", "--soft", agent.git("commit-tree", tree, "-p", "HEAD", "-m", "many"))
    with pytest.raises(NotTakenIn, match="more files than a checkout can hold"):
        follow(repo, agent.path)


def test_long_attributes_are_left_to_git_also_under_a_second_name(repo, agent):
    blob = _object(agent, "blob", b"x" * 3000)
    tree = _object(agent, "tree", b"100644 .gitattributes\0" + bytes.fromhex(blob))
    assert taken(repo, agent, _commit_of(agent, ("100644", "a", blob)))
    assert not taken(repo, agent, _commit_of(agent, ("100644", "a", blob), ("40000", "b", tree)))


HARMLESS = (b"a", b".a", b"a-b", b"A_b@c.py", b"-x", b"a b", b".github", b".gitignore", b"...a")
HARMFUL = (
    *(b".git", b".GIT", b".gIt", b".git ", b".git.", b".gitmodules", b".GitModules", b".gitx"),
    *(b".", b"..", b"...", b"git~1", b"gi7eba~1", b"a:b", b"a\\b", b"a ", b"a.", b"a\n", b"\x1b[m"),
    *("ä".encode(), ".g\u200cit".encode(), b"\xff", b"a\x7f"),
)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_name_is_plain(name):
    assert list(plain_entries(b"100644 " + name + b"\0" + ID)) == [name]


@pytest.mark.parametrize("name", HARMFUL)
@pytest.mark.parametrize("mode", [b"100644", b"40000", b"120000"])
def test_a_name_that_some_system_reads_as_another_is_not(name, mode):
    with pytest.raises(NotPlain):
        plain_entries(mode + b" " + name + b"\0" + ID)


@pytest.mark.parametrize(
    "tree",
    [
        b"160000 sub\0" + ID,
        b"100664 a\0" + ID,
        b"040000 a\0" + ID,
        b"120000 .gitignore\0" + ID,
        b"100644 b\0" + ID + b"100644 a\0" + ID,
        b"100644 a\0" + ID + b"100644 a\0" + ID,
        b"100644 a\0" + ID + b"40000 a\0" + ID,
        b"100644 a\0" + ID[:10],
        b"100644 a/b\0" + ID,
        b"100644 \0" + ID,
    ],
)
def test_a_tree_in_another_form_is_not_plain(tree):
    with pytest.raises(NotPlain):
        plain_entries(tree)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b"100644 a\0", b"100644 a.txt\0"),
        (b"100644 a.txt\0", b"40000 a\0"),
        (b"40000 a\0", b"100644 aA\0"),
    ],
)
def test_a_folder_is_in_its_place_as_if_its_name_ended_in_a_slash(first, second):
    assert len(plain_entries(first + ID + second + ID)) == 2
    with pytest.raises(NotPlain):
        plain_entries(second + ID + first + ID)


PERSON = b"A B <a@b> 1 +0000\n"
TREE = b"tree " + b"1" * 40 + b"\n"


def test_a_usual_commit_is_plain():
    commit = TREE + b"parent " + b"2" * 40 + b"\nauthor " + PERSON + b"committer " + PERSON + b"\nm"
    assert plain_commit(commit) == ("1" * 40, ("2" * 40,))


@pytest.mark.parametrize(
    "commit",
    [
        TREE + b"author " + PERSON + b"committer " + PERSON + b"gpgsig x\n\nm",
        TREE + b"author " + PERSON + b"committer " + PERSON + b"\nm\0m",
        TREE + b"author A B a@b 1 +0000\ncommitter " + PERSON + b"\nm",
        TREE + b"author A <a<b> 1 +0000\ncommitter " + PERSON + b"\nm",
        TREE + b"author A <a> 01 +0000\ncommitter " + PERSON + b"\nm",
        TREE + b"author A <a> 1 +000\ncommitter " + PERSON + b"\nm",
        b"tree 1\nauthor " + PERSON + b"committer " + PERSON + b"\nm",
        TREE + b"committer " + PERSON + b"\nm",
    ],
)
def test_a_commit_in_another_form_is_not(commit):
    with pytest.raises(NotPlain):
        plain_commit(commit)


# The branch moves without git


def test_a_branch_moves_only_from_where_it_was_expected(repo, person):
    first, second = person.git("rev-parse", "HEAD"), person.commit(message="second")
    person.git("branch", "crew-7", first)
    ref, lock = "refs/heads/crew-7", repo.common_dir / "refs/heads/crew-7.lock"
    assert not is_swapped(repo, ref, to=first, expected=second)
    assert (commit_of(repo, ref), lock.exists()) == (first, False)
    assert is_swapped(repo, ref, to=second, expected=first)
    assert (commit_of(repo, ref), lock.exists()) == (second, False)


def test_a_locked_or_packed_branch_is_left_to_git(repo, person):
    first, second = person.git("rev-parse", "HEAD"), person.commit(message="second")
    person.git("branch", "crew-7", first)
    ref, lock = "refs/heads/crew-7", repo.common_dir / "refs/heads/crew-7.lock"
    lock.write_text("")
    assert not is_swapped(repo, ref, to=second, expected=first)
    assert lock.exists()
    lock.unlink()
    person.git("pack-refs", "--all")
    assert not is_swapped(repo, ref, to=second, expected=first)
    assert commit_of(repo, ref) == first
