"""What git does not add is in a checkpoint all the same, or the checkpoint names it."""

import ctypes
import os
import shutil
import subprocess
import sys

import pytest

from crew.git.checkpoints import refused_files
from crew.git.checkpoints.checkpoints import checkpoints, restore, take_checkpoint
from crew.git.worktrees.worktrees import ensure_worktree, remove_worktree
from crew.system import crash_points
from git.people import Person

STEP = """
import sys
from pathlib import Path
from crew.git.checkpoints.checkpoints import take_checkpoint
from crew.git.repository import find_repository
repo = find_repository(Path(sys.argv[1]))
take_checkpoint(repo, Path(sys.argv[2]), "7", label="x", at=1.0, with_ignored=True)
"""


@pytest.fixture
def agent(repo, tmp_path, kind) -> Person:
    tree = tmp_path / "trees" / "7"
    ensure_worktree(repo, tree, branch="crew-7", base="main", kind=kind)
    return Person(tree)


def take(repo, agent, *, at=1.0):
    return take_checkpoint(repo, agent.path, "7", label="x", at=at, with_ignored=True)


def inside(agent, path="n", files=None) -> Person:
    one = Person(agent.path / path)
    one.path.mkdir(parents=True)
    one.git("init", "-q")
    one.commit(files or {"work.txt": "hours\n"})
    return one


def restored(repo, agent, tmp_path):
    remove_worktree(repo, agent.path)
    restore(repo, "7", None, tmp_path / "back")
    return Person(tmp_path / "back").tree()


# Repositories inside that crew does not read


def linked(git):
    git.symlink_to("../real")


def with_crlf(git):
    git.write_bytes(b"gitdir: ../real\r\n")


def with_nul(git):
    git.write_bytes(b"gitdir: ../real\0\n")


def behind_a_linked_file(git):
    (git.parent.parent / "pointer").write_text("gitdir: ../real\n")
    git.symlink_to("../pointer")


@pytest.mark.parametrize("point", [linked, with_crlf, with_nul, behind_a_linked_file])
@pytest.mark.parametrize("ignored", ["", "n/\n", "n/\nreal/\n"])
def test_files_of_a_repository_inside_are_kept_however_it_is_named(
    repo, agent, tmp_path, point, ignored
):
    one = inside(agent)
    inside(agent, "n/deep/inner", {"more.txt": "more\n"})
    shutil.move(one.path / ".git", agent.path / "real")
    point(one.path / ".git")
    agent.write(".gitignore", ignored)
    take(repo, agent)
    files = restored(repo, agent, tmp_path)
    assert files["n/work.txt"] == b"hours\n"
    assert files["n/deep/inner/more.txt"] == b"more\n"
    inner = Person(tmp_path / "back" / "n" / "deep" / "inner")
    assert inner.git("log", "--format=%s") == "work"


def test_a_repository_elsewhere_in_an_ignored_folder_is_kept_like_its_other_files(
    repo, agent, tmp_path
):
    agent.commit({".gitignore": "build/\n"})
    inside(agent, "build/n")
    shutil.move(agent.path / "build" / "n" / ".git", tmp_path / "elsewhere")
    (agent.path / "build" / "n" / ".git").write_text(f"gitdir: {tmp_path}/elsewhere\n")
    take(repo, agent)
    assert restored(repo, agent, tmp_path)["build/n/work.txt"] == b"hours\n"


def test_a_repository_that_another_one_inside_ignores_is_kept(repo, agent, tmp_path):
    inside(agent, files={".gitignore": "m/\n"})
    inside(agent, "n/m", {"work.txt": "hours\n", ".gitignore": "deep/\n"})
    inside(agent, "n/m/deep", {"more.txt": "more\n"})
    kept = take(repo, agent)
    assert [one.path for one in kept.notes.nested] == ["n", "n/m", "n/m/deep"]
    files = restored(repo, agent, tmp_path)
    assert (files["n/m/work.txt"], files["n/m/deep/more.txt"]) == (b"hours\n", b"more\n")


# Names that git refuses


@pytest.mark.parametrize("name", [".GIT/work", "git~1", ".git ./x", f"git~1{'.' * 200}/y"])
@pytest.mark.parametrize("folder", ["", "n/", "ignored/"])
def test_a_file_whose_name_git_refuses_is_kept_under_another(repo, agent, tmp_path, folder, name):
    agent.write(".gitignore", "ignored/\n")
    if folder == "n/":
        inside(agent)
    agent.write(f"{folder}{name}", "hours\n")
    agent.write(f"{folder}fine.txt", "fine\n")
    kept = take(repo, agent)
    (note,) = [one for one in kept.notes.left_out if name in one]
    assert checkpoints(repo, "7") == [kept]
    assert take(repo, agent, at=2.0) is None
    files = restored(repo, agent, tmp_path)
    place = note.removesuffix(")").partition("its content is in ")[2]
    assert files[place] == b"hours\n"
    assert files[f"{folder}fine.txt"] == b"fine\n"
    assert "n/work.txt" in files or folder != "n/"


def test_a_link_whose_name_git_refuses_is_kept_under_another(repo, agent, tmp_path):
    (agent.path / ".gitmodules").symlink_to("elsewhere")
    (agent.path / "not-added-by-git").mkdir()
    agent.write("not-added-by-git/_.gitmodules", "of the agent\n")
    take(repo, agent)
    files = restored(repo, agent, tmp_path)
    assert files["not-added-by-git/_.gitmodules"] == b"of the agent\n"
    link = tmp_path / "back" / "not-added-by-git-2" / "_.gitmodules"
    assert str(link.readlink()) == "elsewhere"


def test_refused_names_do_not_keep_files_with_an_odd_encoding_out(repo, agent, tmp_path):
    agent.write(".gitattributes", "*.txt working-tree-encoding=UTF-16\n")
    agent.write("plain.txt", "no mark\n")
    agent.write(".GIT/work", "hours\n")
    (agent.path / "a.txt").unlink()
    kept = take(repo, agent)
    assert agent.git("cat-file", "blob", f"{kept.commit}:plain.txt") == "no mark"
    assert agent.git("cat-file", "blob", f"{kept.commit}:not-added-by-git/_.GIT/_work") == "hours"
    assert "a.txt" not in agent.git("ls-tree", "--name-only", kept.commit).splitlines()


def test_what_is_gone_is_gone_also_beside_a_refused_name(repo, agent):
    agent.write(".GIT/work", "hours\n")
    agent.write(".gitattributes", "*.md working-tree-encoding=UTF-16\n")
    agent.write("plain.md", "no mark\n")
    shutil.rmtree(agent.path / "sub")
    kept = take(repo, agent)
    assert "sub/c.txt" not in agent.git("ls-tree", "-r", "--name-only", kept.commit).splitlines()


def test_a_name_beyond_a_link_leads_to_nothing_else(repo, agent, tmp_path):
    one = inside(agent, files={"a/x.txt": "x\n", "own.txt": "mine\n"})
    shutil.rmtree(one.path / "a")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.txt").write_text("of a person\n")
    (one.path / "a").symlink_to(tmp_path / "elsewhere")
    kept = take(repo, agent)
    assert kept.notes.left_out == ()
    listed = agent.git("ls-tree", "-r", kept.commit, "n").splitlines()
    assert [line.partition("\t")[2] for line in listed] == ["n/a", "n/own.txt"]
    assert restored(repo, agent, tmp_path)["n/own.txt"] == b"mine\n"


# Closed files and folders


def forgo_rights():
    """Let modes hold for root, too, in the program that this process becomes."""
    if os.geteuid() == 0:
        for right in (1, 2, 3):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
            ctypes.CDLL(None).prctl(24, right, 0, 0, 0)


def step(repo, agent):
    arguments = [sys.executable, "-c", STEP, str(repo.root), str(agent.path)]
    done = subprocess.run(
        arguments, preexec_fn=forgo_rights, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="root can give up rights only on Linux")
@pytest.mark.parametrize("name", ["sub/c.txt", "new/deep/c.txt", "ignored/c.txt", "n/sub/c.txt"])
@pytest.mark.parametrize("closing", ["the file", 0o000, 0o400])
def test_closed_files_and_folders_are_kept(repo, agent, tmp_path, name, closing):
    agent.commit({".gitignore": "ignored/\n"})
    if name.startswith("n/"):
        inside(agent)
    agent.write("other.txt", "other\n")
    file = agent.write(name, "hours\n")
    closed = file if closing == "the file" else file.parent
    closed.chmod(0o000 if closing == "the file" else closing)
    step(repo, agent)
    closed.chmod(0o700)
    files = restored(repo, agent, tmp_path)
    assert (files[name], files["other.txt"]) == (b"hours\n", b"other\n")


@pytest.mark.skipif(sys.platform != "linux", reason="root can give up rights only on Linux")
def test_a_closed_git_dir_inside_is_kept(repo, agent, tmp_path):
    one = inside(agent)
    commit = one.git("rev-parse", "HEAD")
    (one.path / ".git").chmod(0o000)
    step(repo, agent)
    restored(repo, agent, tmp_path)
    assert Person(tmp_path / "back" / "n").git("rev-parse", "HEAD") == commit


@pytest.mark.skipif(sys.platform != "linux", reason="root can give up rights only on Linux")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of another user")
@pytest.mark.parametrize("place", ["theirs/", "theirs/x.txt"])
@pytest.mark.parametrize("other", [{}, {"other.txt": "other\n"}])
def test_what_only_another_user_can_read_is_named(repo, agent, place, other):
    agent.write("theirs/x.txt", "x\n")
    closed = agent.path / place
    closed.chmod(0o000)
    os.chown(closed, 12345, 12345)
    for name, text in other.items():
        agent.write(name, text)
    step(repo, agent)
    (kept,) = checkpoints(repo, "7")
    assert kept.notes.left_out == (f"{place} (not readable)",)
    assert [name in agent.git("ls-tree", "--name-only", kept.commit) for name in other] == [
        True for _ in other
    ]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("at", ["git.open_closed"])
def test_a_crash_beside_the_opening_of_a_folder_loses_nothing(agent, monkeypatch, at, moment):
    folder = agent.write("new/x.txt", "x\n").parent
    folder.chmod(0o000)
    monkeypatch.setattr(crash_points, "_at", f"{at}.{moment}")
    monkeypatch.setattr(crash_points, "_left", 1)
    monkeypatch.setattr(crash_points, "_how", "enospc")
    assert not refused_files.open_closed(agent.path, ["new"])
    assert folder.stat().st_mode & 0o700 == (0o000 if moment == "before" else 0o700)
    assert refused_files.open_closed(agent.path, ["new"])
    assert (folder / "x.txt").read_text() == "x\n"
