"""What git would not show, and what it forgets, is in the checkpoint of a worktree all the same."""

import hashlib
import os
import shutil

import pytest

from crew.git.checkpoints import ignored_files, nested_history, nested_repositories, reflogs
from crew.git.checkpoints.checkpoints import (
    checkpoints,
    restore,
    restore_into_worktree,
    take_checkpoint,
)
from crew.git.git_command import git
from crew.git.repository import commit_of
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.git.worktrees.worktrees import ensure_worktree, remove_worktree, state_of
from git.people import Person


@pytest.fixture
def agent(repo, tmp_path, kind) -> Person:
    tree = tmp_path / "tree 7"
    ensure_worktree(repo, tree, branch="crew-7", base="main", kind=kind)
    return Person(tree)


def take(repo, agent, *, with_ignored=False):
    return take_checkpoint(repo, agent.path, "7", label="step", at=100.0, with_ignored=with_ignored)


def scaffolded(agent, path="app", files=None) -> Person:
    """A repository of its own inside, as generators of projects make it."""
    inner = Person(agent.path / path)
    inner.path.mkdir(parents=True)
    inner.git("init", "-q")
    inner.commit(files or {"main.py": "print(1)\n"}, "first")
    return inner


def restored(repo, tmp_path) -> Person:
    into = tmp_path / "restored"
    restore(repo, "7", None, into)
    return Person(into)


# Repositories inside


def test_a_committed_link_is_kept_with_files_and_history(repo, agent, tmp_path):
    inner = scaffolded(agent)
    inner.git("tag", "-a", "v1", "-m", "one")
    inner.git("branch", "old")
    second = inner.commit({"main.py": "print(2)\n"}, "second")
    inner.write("loose.txt", "loose\n")
    agent.commit(message="a link and nothing else")
    kept = take(repo, agent)
    assert [one.path for one in kept.notes.nested] == ["app"]
    assert checkpoints(repo, "7") == [kept]
    remove_worktree(repo, agent.path)
    Person(repo.root).git("gc", "-q", "--prune=now")
    back = Person(restored(repo, tmp_path).path / "app")
    assert back.git("log", "--format=%s") == "second\nfirst"
    assert back.git("rev-parse", "HEAD") == second
    assert back.git("symbolic-ref", "HEAD") == "refs/heads/main"
    first = back.git("rev-parse", "HEAD~1")
    assert back.git("rev-parse", "old", "v1").split() == [first, first]
    assert back.git("status", "--porcelain") == "?? loose.txt"
    assert back.git("fsck", "--strict") == ""


def test_repositories_inside_repositories_are_kept(repo, agent, tmp_path):
    scaffolded(agent, "app")
    innermost = scaffolded(agent, "app/vendor/lib", {"lib.c": "int x;\n"})
    head = innermost.git("rev-parse", "HEAD")
    kept = take(repo, agent)
    assert [one.path for one in kept.notes.nested] == ["app", "app/vendor/lib"]
    remove_worktree(repo, agent.path)
    back = restored(repo, tmp_path)
    assert (back.path / "app/vendor/lib/lib.c").read_text() == "int x;\n"
    assert Person(back.path / "app/vendor/lib").git("rev-parse", "HEAD") == head


def test_a_lost_worktree_gets_its_repository_back(repo, agent):
    inner = scaffolded(agent)
    head = inner.git("rev-parse", "HEAD")
    agent.commit(message="a link")
    kept = take(repo, agent)
    assert take(repo, agent) is None
    remove_worktree(repo, agent.path)
    ensure_worktree(repo, agent.path, branch="crew-7", base="main")
    restore_into_worktree(repo, agent.path, kept.commit)
    assert inner.git("rev-parse", "HEAD") == head
    assert inner.git("status", "--porcelain") == ""
    assert state_of(repo, agent.path).changed == ()


def test_more_commits_inside_make_another_checkpoint(repo, agent):
    inner = scaffolded(agent)
    assert take(repo, agent).number == 1
    assert take(repo, agent) is None
    inner.git("commit", "-q", "--allow-empty", "-m", "the same files")
    assert take(repo, agent).number == 2


def test_the_files_of_a_link_whose_git_dir_was_removed_are_kept(repo, agent, tmp_path):
    inner = scaffolded(agent)
    agent.commit(message="a link")
    shutil.rmtree(inner.path / ".git")
    assert state_of(repo, agent.path).changed == ()
    assert take(repo, agent) is not None
    assert restored(repo, tmp_path).tree()["app/main.py"] == b"print(1)\n"


def test_the_history_of_a_repository_over_tracked_files_is_kept(repo, agent, tmp_path):
    inner = Person(agent.path / "sub")
    inner.git("init", "-q")
    inner.commit({"c.txt": "inside\n"}, "inside")
    agent.commit(message="both know the file")
    kept = take(repo, agent)
    assert [one.path for one in kept.notes.nested] == ["sub"]
    back = restored(repo, tmp_path)
    assert Person(back.path / "sub").git("log", "--format=%s") == "inside"
    assert back.tree() == agent.tree()


def test_a_submodule_as_its_remote_has_it_needs_no_checkpoint(repo, agent, tmp_path):
    library = scaffolded(Person(tmp_path), "library")
    allowed = ("-c", "protocol.file.allow=always")
    agent.git(*allowed, "submodule", "--quiet", "add", str(library.path), "lib")
    agent.commit(message="a submodule")
    assert take(repo, agent) is None
    inner = Person(agent.path / "lib")
    inner.commit({"own.txt": "only here\n"})
    agent.commit(message="moved")
    assert state_of(repo, agent.path).changed == ()
    kept = take(repo, agent)
    assert commit_of(repo, inner.git("rev-parse", "HEAD")) in kept.notes.commits
    assert restored(repo, tmp_path).tree()["lib/own.txt"] == b"only here\n"


def test_no_program_of_a_repository_inside_is_run(repo, agent, marker, tmp_path):
    inner = scaffolded(agent)
    script = inner.write(".git/evil", f"#!/bin/sh\ntouch '{marker}'\n")
    script.chmod(0o755)
    hooks = inner.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        shutil.copy(script, hooks / name)
    for key in ("core.fsmonitor", "filter.x.clean", "uploadpack.packObjectsHook", "core.editor"):
        inner.git("config", key, str(script))
    inner.write(".gitattributes", "* filter=x\n")
    inner.write("more.txt", "more\n")
    assert take(repo, agent, with_ignored=True) is not None
    restored(repo, tmp_path)
    assert not marker.exists()


@pytest.mark.parametrize("damage", ["no objects", "broken index", "too large"])
def test_the_files_are_kept_when_the_history_cannot_be(repo, agent, tmp_path, damage, monkeypatch):
    inner = scaffolded(agent)
    if damage == "no objects":
        shutil.rmtree(inner.path / ".git" / "objects")
        (inner.path / ".git" / "objects").mkdir()
    elif damage == "broken index":
        (inner.path / ".git" / "index").write_bytes(b"nonsense")
    else:
        monkeypatch.setattr(nested_history, "HISTORY_LIMIT", 10)
    kept = take(repo, agent)
    assert restored(repo, tmp_path).tree()["app/main.py"] == b"print(1)\n"
    if damage != "broken index":
        assert kept.notes.left_out == ("the history of app",)


def test_a_repository_inside_is_found_without_an_index_but_not_in_a_cache(repo, agent):
    scaffolded(agent, "deep/app")
    scaffolded(agent, "node_modules/lib")
    (git_dir_for(repo, agent.path) / "index").write_bytes(b"nonsense")
    assert [one.path for one in take(repo, agent).notes.nested] == ["deep/app"]


def test_git_reads_no_repository_that_crew_does_not_read(tmp_path):
    around = nested_repositories.surroundings(tmp_path, tmp_path)
    answer = nested_repositories.Nested(around=around, path="app", git_dir=None).ask("status")
    assert (answer.code, answer.out) == (128, b"")


# Ignored files


def test_a_file_of_exactly_the_limit_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(ignored_files, "FILE_LIMIT", 3)
    for name, text in (("a", "123"), ("b", "1234")):
        Person(tmp_path).write(name, text)
    assert ignored_files.choose(tmp_path, ["a", "b"]).kept == ("a",)


def test_the_files_of_an_ignored_folder_count_once(tmp_path, monkeypatch):
    monkeypatch.setattr(ignored_files, "MOST_FILES", 3)
    for name in ("a", "b", "deep/c"):
        Person(tmp_path).write(f"build/{name}", "x")
    assert ignored_files.choose(tmp_path, ["build/"]).kept == ("build/a", "build/b", "build/deep/c")
    Person(tmp_path).write("build/d", "x")
    assert ignored_files.choose(tmp_path, ["build/"]).left_out == ("build/ (more than 3 files)",)


def test_ignored_files_are_kept_when_the_worktree_is_about_to_go(repo, agent, tmp_path):
    agent.commit({".gitignore": ".env\nlocal/\n"})
    agent.write(".env", "KEY=1\n")
    agent.write("local/notes.txt", "notes\n")
    agent.write("local/deep/more.txt", "more\n")
    assert take(repo, agent) is None
    kept = take(repo, agent, with_ignored=True)
    assert kept.notes.left_out == ()
    assert restored(repo, tmp_path).tree() == agent.tree()
    assert take(repo, agent, with_ignored=True) is None


def test_what_is_too_much_is_left_out_by_name(repo, agent, tmp_path, monkeypatch):
    monkeypatch.setattr(ignored_files, "FILE_LIMIT", 1000)
    monkeypatch.setattr(ignored_files, "TOTAL_LIMIT", 2000)
    monkeypatch.setattr(ignored_files, "MOST_FILES", 5)
    agent.commit({".gitignore": "*.bin\nbuild/\nnode_modules/\n"})
    agent.write("large.bin", "x" * 1001)
    for name in ("a.bin", "b.bin", "c.bin"):
        agent.write(name, "x" * 900)
    for number in range(9):
        agent.write(f"build/{number}.txt", "x")
        agent.write(f"node_modules/{number}.txt", "x")
    kept = take(repo, agent, with_ignored=True)
    assert kept.notes.left_out == (
        "build/ (more than 5 files)",
        "c.bin (0.0 MB)",
        "large.bin (0.0 MB)",
    )
    assert checkpoints(repo, "7") == [kept]
    files = restored(repo, tmp_path).tree()
    assert {"a.bin", "b.bin"} < files.keys()
    assert not {"c.bin", "large.bin", "build/1.txt", "node_modules/1.txt"} & files.keys()


def test_a_clone_in_an_ignored_folder_is_left_out_and_a_repository_of_its_own_is_not(
    repo, agent, tmp_path
):
    agent.commit({".gitignore": "build/\nscratch/\n"})
    agent.write("build/note.txt", "note\n")
    agent.git("clone", "-q", str(repo.root), "build/deps/lib")
    own = scaffolded(agent, "scratch/app")
    kept = take(repo, agent, with_ignored=True)
    assert [one.path for one in kept.notes.nested] == ["scratch/app"]
    assert kept.notes.left_out == ("build/deps/lib/ (a clone)",)
    back = restored(repo, tmp_path)
    assert (back.path / "build/note.txt").exists()
    head = own.git("rev-parse", "HEAD")
    assert Person(back.path / "scratch/app").git("rev-parse", "HEAD") == head


# Hidden files


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
@pytest.mark.parametrize("reader", ["python", "git"])
def test_a_hidden_change_is_seen_and_kept(repo, agent, tmp_path, mark, reader):
    if reader == "git":
        agent.git("update-index", "--index-version", "4")
    agent.git("update-index", mark, "a.txt")
    assert take(repo, agent) is None
    agent.write("a.txt", "changed in secret\n")
    assert agent.git("status", "--porcelain") == ""
    assert state_of(repo, agent.path).changed == ("a.txt",)
    before = agent.git("ls-files", "-v")
    assert take(repo, agent) is not None
    assert restored(repo, tmp_path).tree()["a.txt"] == b"changed in secret\n"
    assert agent.git("ls-files", "-v") == before


def test_a_hidden_deletion_is_seen_but_a_sparse_checkout_is_none(repo, agent):
    agent.git("update-index", "--assume-unchanged", "a.txt")
    (agent.path / "a.txt").unlink()
    agent.git("update-index", "--skip-worktree", "b.txt")
    (agent.path / "b.txt").unlink()
    assert state_of(repo, agent.path).changed == ("a.txt",)


# Commits that were left behind


def test_commits_that_were_reset_away_are_kept(repo, agent):
    agent.commit({"x.txt": "1\n"}, "one")
    lost = agent.commit({"x.txt": "2\n"}, "two")
    agent.git("reset", "-q", "--hard", "main")
    kept = take(repo, agent)
    assert kept.notes.reset_away == (lost,)
    assert kept.parent == commit_of(repo, "main")
    assert checkpoints(repo, "7") == [kept]
    assert take(repo, agent) is None
    remove_worktree(repo, agent.path)
    person = Person(repo.root)
    person.git("branch", "-D", "crew-7")
    person.git("gc", "-q", "--prune=now")
    assert person.git("show", f"{lost}:x.txt") == "2"


def test_a_commit_is_kept_that_was_made_and_reset_away_since_the_last_look(repo, agent):
    agent.commit({"x.txt": "1\n"})
    assert take(repo, agent) is None
    lost = agent.commit({"x.txt": "2\n"})
    agent.git("reset", "-q", "--hard", "HEAD~1")  # HEAD is where it was at that look
    assert take(repo, agent).notes.reset_away == (lost,)


def test_each_way_to_leave_a_commit_behind_is_found(repo, agent):
    amended = agent.commit({"x.txt": "1\n"})
    agent.git("commit", "-q", "--amend", "-m", "better")
    assert take(repo, agent).notes.reset_away == (amended,)
    moved = agent.commit({"x.txt": "2\n"})
    agent.git("update-ref", "refs/heads/crew-7", "main")
    agent.git("reset", "-q", "--hard")
    assert take(repo, agent).notes.reset_away == (moved,)
    agent.write("a.txt", "stashed\n")
    agent.git("stash", "-q")
    stash = agent.git("rev-parse", "refs/stash")
    assert take(repo, agent).notes.reset_away == (stash,)
    assert take(repo, agent) is None
    other = Person(repo.root)
    other.write("a.txt", "of a person\n")
    other.git("stash", "-q")
    assert take(repo, agent) is None


def test_the_way_back_to_each_works_when_typed(repo, agent):
    plain = agent.commit({"plain.txt": "1\n"})
    agent.git("reset", "-q", "--hard", "main")
    agent.commit({"side.txt": "1\n"})
    side = agent.git("rev-parse", "HEAD")
    agent.git("reset", "-q", "--hard", "main")
    agent.git("merge", "-q", "--no-ff", "-m", "a merge", side)
    merge = agent.git("rev-parse", "HEAD")
    agent.git("reset", "-q", "--hard", "main")
    agent.write("new.txt", "stashed\n")
    agent.git("stash", "-q", "--include-untracked")
    stash = agent.git("rev-parse", "refs/stash")
    take(repo, agent)
    for commit in (plain, merge, stash):
        agent.git(*reflogs.way_back(repo, commit).split()[1:])
    kept = ("plain.txt", "side.txt", "new.txt")
    assert [(agent.path / name).exists() for name in kept] == [True] * 3


def test_work_that_only_goes_on_starts_no_process(repo, agent, monkeypatch):
    """With a reflog, and with the worktree as it was committed."""
    for number in range(3):
        agent.commit({"x.txt": f"{number}\n"})
    assert take(repo, agent) is None
    index = git_dir_for(repo, agent.path) / "index"
    later = index.stat().st_mtime_ns + 10**9
    os.utime(index, ns=(later, later))
    monkeypatch.setattr(reflogs, "ask", None)
    monkeypatch.setattr("crew.git.git_command.spawn_git.run", None)
    assert take(repo, agent) is None


def test_a_commit_that_came_back_is_not_taken_out_by_an_older_checkpoint(repo, agent):
    lost = agent.commit({"x.txt": "1\n"})
    agent.git("reset", "-q", "--hard", "main")
    agent.write("new.txt", "new\n")
    kept = take(repo, agent)
    assert kept.notes.reset_away == (lost,)
    (agent.path / "new.txt").unlink()
    agent.git("reset", "-q", "--hard", lost)
    restore_into_worktree(repo, agent.path, kept.commit)
    assert (agent.path / "x.txt").exists()
    assert state_of(repo, agent.path).changed == ("new.txt",)


def test_a_history_of_exactly_the_limit_is_not_too_large(repo, tmp_path, monkeypatch):
    objects = tmp_path / "objects"
    (objects / "ab").mkdir(parents=True)
    (objects / "one").write_bytes(b"x" * 30)
    (objects / "ab" / "two").write_bytes(b"x" * 70)
    for limit, is_large in ((99, True), (100, False)):
        monkeypatch.setattr(nested_history, "HISTORY_LIMIT", limit)
        assert nested_history._is_large(objects) is is_large


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
def test_files_whose_encoding_git_cannot_read_are_kept_as_they_are(repo, agent, encoding):
    files = {"plain.txt": "no mark\n", "a\nname.txt": "two lines\n"}
    agent.write(".gitattributes", f"*.txt working-tree-encoding={encoding}\n")
    for name, text in files.items():
        agent.write(name, text)
    (agent.path / "link").symlink_to("plain.txt")
    (agent.path / "a.txt").unlink()
    kept = take(repo, agent)

    def content(name):
        return git(repo.common_dir, "cat-file", "blob", f"{kept.tree}:{name}") + "\n"

    assert {name: content(name) for name in files} == files
    assert content("link") == "plain.txt\n"
    listed = git(repo.common_dir, "ls-tree", "--name-only", kept.tree)
    assert "a.txt" not in listed.splitlines()


@pytest.mark.parametrize("name", ["../n", "."])
def test_a_forged_index_of_a_repository_inside_leads_to_nothing_else(repo, agent, tmp_path, name):
    inner = scaffolded(agent, "n", {"zzzzz"[: len(name)]: "mine\n", "own": "mine\n"})
    index = inner.path / ".git" / "index"
    content = index.read_bytes()[:-20].replace(b"zzzzz"[: len(name)], name.encode())
    index.write_bytes(content + hashlib.sha1(content).digest())
    take(repo, agent)
    assert (restored(repo, tmp_path).path / "n" / "own").read_text() == "mine\n"
