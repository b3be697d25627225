"""Pipes and sockets in a worktree, for which git would wait: crew finds them before it runs git."""

import os
import shutil
import socket
import threading

import pytest

from crew.git import git_command, spawn_git
from crew.git.checkpoints.checkpoints import restore, take_checkpoint
from crew.git.git_command import GitFailed, ask
from crew.git.repository import commit_of
from crew.git.task_repository.take_in import NotTakenIn
from crew.git.worktrees.branch_work import read_work
from crew.git.worktrees.worktrees import (
    ensure_detached,
    ensure_worktree,
    remove_worktree,
    state_of,
)
from crew.system import crash_points
from git.people import Person
from refusals import raises_code

PLACES = [".gitignore", "folder/.gitattributes", "a.txt", "new/.gitignore"]


def put_pipe(file):
    os.mkfifo(file)


def put_socket(file):
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(file.parent)
        made.bind(file.name)


@pytest.fixture
def agent(repo, tmp_path) -> Person:
    tree = tmp_path / "trees" / "7"
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    agent = Person(tree)
    agent.commit({"folder/x.txt": "x\n"})
    agent.write("folder/x.txt", "changed\n")
    agent.write("new/n.txt", "n\n")
    return agent


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("put", [put_pipe, put_socket])
@pytest.mark.parametrize("place", PLACES)
def test_git_does_not_run_where_it_would_wait(repo, agent, place, put):
    file = agent.path / place
    file.unlink(missing_ok=True)
    put(file)
    with raises_code(NotTakenIn, "special_file", place) as refused:
        state_of(repo, agent.path)
    assert f"{place}" in refused.value.hint
    assert read_work(repo, agent.path, base="main").uncommitted == ""


@pytest.mark.parametrize("place", PLACES)
def test_a_checkpoint_deletes_it_and_keeps_the_files(repo, agent, place, monkeypatch):
    file = agent.path / place
    file.unlink(missing_ok=True)
    put_pipe(file)
    put_pipe(agent.path / "of no interest to git")
    for moment in ("before", "after"):
        monkeypatch.setattr(crash_points, "_at", f"git.drop_special_file.{moment}")
        monkeypatch.setattr(crash_points, "_left", 1)
        monkeypatch.setattr(crash_points, "_how", "enospc")
        with pytest.raises(OSError, match="drop_special_file"):
            take_checkpoint(repo, agent.path, "7", label="step", at=1.0)
        if moment == "before":
            assert file.is_fifo()
    monkeypatch.setattr(crash_points, "_at", "")
    kept = take_checkpoint(repo, agent.path, "7", label="step", at=1.0)
    assert kept is not None
    assert not os.path.lexists(file)
    assert (agent.path / "of no interest to git").is_fifo()
    person = Person(repo.root)
    assert person.git("show", f"{kept.commit}:folder/x.txt") == "changed"
    assert kept.parent == commit_of(repo, "crew-7") == agent.git("rev-parse", "HEAD")
    if place == "a.txt":
        assert "a.txt" in state_of(repo, agent.path).changed


@pytest.mark.parametrize("place", [".gitattributes", "folder/.gitignore", "a.txt"])
def test_a_gate_s_folder_is_cleaned_of_them(repo, person, tmp_path, place):
    gate = tmp_path / "trees" / ".gate"
    ensure_detached(repo, gate, commit_of(repo, "main"))
    (gate / place).parent.mkdir(exist_ok=True)
    (gate / place).unlink(missing_ok=True)
    put_pipe(gate / place)
    newer = person.commit({"a.txt": "newer\n", ".gitattributes": "a.txt text\n"})
    ensure_detached(repo, gate, newer)
    assert Person(gate).tree() == person.tree()


def test_the_end_of_crew_ends_gits_that_hang(repo):
    os.mkfifo(repo.root / ".gitignore")
    errors = []

    def hang():
        try:
            ask(repo.root, "status", "--porcelain")
        except GitFailed as error:
            errors.append(error.code)

    hanging = threading.Thread(target=hang)
    hanging.start()
    try:
        while not spawn_git._running:
            assert hanging.is_alive()
        spawn_git.end_running()
        hanging.join(timeout=60)
        assert errors == ["git_ended"]
        with pytest.raises(GitFailed, match="crew ends"):
            ask(repo.root, "rev-parse", "HEAD")
    finally:
        spawn_git.allow()
    assert ask(repo.root, "rev-parse", "HEAD").code == 0
    assert not spawn_git._running


def put_in_git_dir(agent, name):
    """A repository inside with a pipe among the files that git reads first, and its commit."""
    one = Person(agent.path / "n")
    one.path.mkdir()
    one.git("init", "-q")
    commit = one.commit({"work.txt": "hours\n"})
    file = one.path / ".git" / name
    file.unlink(missing_ok=True)
    file.parent.mkdir(exist_ok=True)
    os.mkfifo(file)
    return one, commit


def behind_a_link(folder, elsewhere):
    shutil.move(folder / ".git", elsewhere)
    (folder / ".git").symlink_to(elsewhere)
    return "n/.git"


def behind_a_file(folder, elsewhere):
    shutil.move(folder / ".git", elsewhere)
    (folder / ".git").write_bytes(b"gitdir: " + os.fsencode(elsewhere) + b"\0\r\n")
    return "n/.git"


def behind_a_link_to_a_file(folder, elsewhere):
    behind_a_file(folder, elsewhere)
    shutil.move(folder / ".git", folder / "pointer")
    (folder / ".git").symlink_to("pointer")
    return "n/.git"


@pytest.fixture
def impatient(monkeypatch):
    """Git that waits fails within seconds."""
    once = git_command._run_once
    monkeypatch.setattr(
        git_command, "_run_once", lambda *a, timeout_s, **more: once(*a, timeout_s=5, **more)
    )


IN_GIT_DIR = [
    *("HEAD", "commondir", "config", "config.worktree", "packed-refs", "refs/heads/main"),
    "reftable/tables.list",
]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", IN_GIT_DIR)
@pytest.mark.parametrize("is_ignored", [False, True])
def test_git_does_not_wait_in_a_repository_inside(repo, agent, tmp_path, name, is_ignored):
    put_in_git_dir(agent, name)
    agent.write(".gitignore", "n/\n" if is_ignored else "")
    with raises_code(NotTakenIn, "special_file", f"n/.git/{name}"):
        state_of(repo, agent.path)
    assert read_work(repo, agent.path, base="main").uncommitted == ""
    take_checkpoint(repo, agent.path, "7", label="step", at=1.0, with_ignored=True)
    assert not os.path.lexists(agent.path / "n" / ".git" / name)
    state_of(repo, agent.path)
    remove_worktree(repo, agent.path)
    restore(repo, "7", None, tmp_path / "back")
    assert (tmp_path / "back" / "n" / "work.txt").read_text() == "hours\n"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main"])
@pytest.mark.parametrize("lead", [behind_a_link, behind_a_file, behind_a_link_to_a_file])
def test_what_leads_git_to_a_pipe_elsewhere_is_deleted_and_not_the_pipe(
    repo, agent, tmp_path, name, lead
):
    one, _ = put_in_git_dir(agent, name)
    elsewhere = tmp_path / "elsewhere"
    place = lead(one.path, elsewhere)
    with raises_code(NotTakenIn, "special_file", place):
        state_of(repo, agent.path)
    assert take_checkpoint(repo, agent.path, "7", label="step", at=1.0) is not None
    assert (elsewhere / name).is_fifo()
    assert not os.path.lexists(agent.path / place)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("link", ["refs", "refs/heads", "refs/heads/main", "commondir"])
def test_links_inside_a_git_dir_lead_git_to_no_pipe(repo, agent, tmp_path, link):
    one, _ = put_in_git_dir(agent, "refs/heads/main")
    git_dir, elsewhere = one.path / ".git", tmp_path / "elsewhere"
    if link == "commondir":
        shutil.copytree(git_dir, elsewhere, ignore=lambda *_: ["main"])
        shutil.move(git_dir / "refs" / "heads" / "main", elsewhere / "refs" / "heads" / "main")
        (git_dir / "commondir").write_text(f"{elsewhere}\r\n")
    else:
        shutil.move(git_dir / link, elsewhere)
        (git_dir / link).symlink_to(elsewhere)
    with raises_code(NotTakenIn, "special_file", f"n/.git/{link}"):
        state_of(repo, agent.path)
    assert take_checkpoint(repo, agent.path, "7", label="step", at=1.0) is not None
    assert elsewhere.exists()
    assert not os.path.lexists(git_dir / link)


@pytest.mark.parametrize("head", ["ref: refs/../../pipe\n", "ref: refs/heads/x\0/../y\n", "ref:"])
def test_no_name_of_a_ref_leads_out_of_a_git_dir(repo, agent, head):
    put_in_git_dir(agent, "pipe")
    (agent.path / "n" / ".git" / "HEAD").write_text(head)
    put_pipe(agent.path / "n" / "pipe")
    take_checkpoint(repo, agent.path, "7", label="step", at=1.0)
    assert (agent.path / "n" / "pipe").is_fifo()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("is_ignored", [False, True])
def test_the_commits_of_a_repository_whose_head_was_a_pipe_are_kept(
    repo, agent, tmp_path, is_ignored
):
    agent.commit({".gitignore": "n/\n" if is_ignored else ""})
    _, commit = put_in_git_dir(agent, "HEAD")
    kept = take_checkpoint(repo, agent.path, "7", label="end", at=1.0, with_ignored=True)
    assert [one.path for one in kept.notes.nested] == ["n"]
    remove_worktree(repo, agent.path)
    restore(repo, "7", None, tmp_path / "back")
    assert Person(tmp_path / "back" / "n").git("rev-parse", "HEAD") == commit
    assert Person(tmp_path / "back" / "n").git("status", "--porcelain") == ""


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", IN_GIT_DIR)
def test_a_gate_s_folder_is_cleaned_of_a_repository_that_makes_git_wait(repo, tmp_path, name):
    gate, main = tmp_path / "trees" / ".gate", commit_of(repo, "main")
    ensure_detached(repo, gate, main)
    put_in_git_dir(Person(gate), name)
    ensure_detached(repo, gate, main)
    assert not (gate / "n").exists()
