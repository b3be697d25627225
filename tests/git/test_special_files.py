"""Pipes and sockets in a worktree, for which git would wait: crew finds them before it runs git."""

import os
import socket
import threading

import pytest

from crew.git import spawn_git
from crew.git.checkpoints.checkpoints import take_checkpoint
from crew.git.git_command import GitFailed, ask
from crew.git.repository import commit_of
from crew.git.task_repository.take_in import NotTakenIn
from crew.git.worktrees.branch_work import read_work
from crew.git.worktrees.worktrees import ensure_detached, ensure_worktree, state_of
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
