"""A person's commit on a task's branch: the task goes on from it, unless both moved."""

import pytest

from crew.domain.kernel.errors import Conflict
from crew.git.repository import commit_of
from crew.git.worktrees import persons_commits
from crew.git.worktrees.worktrees import ensure_worktree, heal, state_of
from crew.system import crash_points
from git.people import Person
from refusals import raises_code


@pytest.fixture
def agent(repo, tmp_path) -> Person:
    tree = tmp_path / "trees" / "7"
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    agent = Person(tree)
    agent.commit({"shared.txt": "agent\n", "x.txt": "x\n"})
    state_of(repo, tree)
    return agent


@pytest.fixture
def fixed(person, agent) -> str:
    """The commit with which a person mends the task's work, in their own checkout."""
    person.git("switch", "-q", "crew-7")
    commit = person.commit({"shared.txt": "person\n", "p.txt": "p\n"})
    person.git("switch", "-q", "main")
    return commit


def test_it_is_in_the_agent_s_folder_before_the_next_step(repo, agent, fixed):
    agent.write("notes.txt", "not committed\n")
    heal(repo, agent.path)
    assert agent.git("rev-parse", "HEAD", "crew-7").split() == [fixed, fixed]
    assert agent.git("status", "--porcelain") == "?? notes.txt"
    assert agent.tree()["shared.txt"] == b"person\n"
    state = state_of(repo, agent.path)
    assert (state.head, state.branch, state.changed) == (fixed, "crew-7", ("notes.txt",))
    mine = agent.commit({"y.txt": "y\n"})
    assert state_of(repo, agent.path).head == mine == commit_of(repo, "crew-7")


@pytest.mark.parametrize("effect", ["git.write_persons_files", "git.note_mirror"])
def test_after_a_kill_it_is_taken_in_again(repo, agent, fixed, effect, monkeypatch):
    for moment in ("before", "after"):
        monkeypatch.setattr(crash_points, "_at", f"{effect}.{moment}")
        monkeypatch.setattr(crash_points, "_left", 1)
        monkeypatch.setattr(crash_points, "_how", "enospc")
        if agent.git("rev-parse", "HEAD") != fixed:
            with pytest.raises(OSError, match=effect):
                heal(repo, agent.path)
    monkeypatch.setattr(crash_points, "_at", "")
    heal(repo, agent.path)
    assert agent.git("rev-parse", "HEAD") == fixed
    assert agent.git("status", "--porcelain") == ""
    assert state_of(repo, agent.path).changed == ()


def test_if_both_moved_the_hint_names_both(repo, agent, fixed):
    head = agent.commit({"y.txt": "y\n"})
    heal(repo, agent.path)
    with raises_code(Conflict, "branch_moved", "crew-7") as refused:
        state_of(repo, agent.path)
    assert (head[:10] in refused.value.hint, fixed[:10] in refused.value.hint) == (True, True)
    assert (agent.git("rev-parse", "HEAD"), commit_of(repo, "crew-7")) == (head, fixed)


def test_a_rewritten_branch_is_a_conflict(repo, person, agent):
    person.git("branch", "-f", "crew-7", person.commit({"p.txt": "p\n"}))
    heal(repo, agent.path)
    with raises_code(Conflict, "branch_moved", "crew-7"):
        state_of(repo, agent.path)


def test_the_agent_s_own_edits_of_the_same_file_stay(repo, agent, fixed):
    agent.write("shared.txt", "not committed\n")
    heal(repo, agent.path)
    assert agent.tree()["shared.txt"] == b"not committed\n"
    assert agent.git("rev-parse", "HEAD") != fixed == commit_of(repo, "crew-7")


def test_while_a_step_runs_nothing_moves_under_it(repo, agent, fixed):
    before = agent.git("rev-parse", "HEAD")
    state_of(repo, agent.path)
    assert agent.git("rev-parse", "HEAD") == before
    assert commit_of(repo, "crew-7") == fixed
    assert persons_commits.take_persons(repo, agent.path) is True


def test_commits_are_taken_in_once_and_those_of_the_agent_never(repo, person, agent):
    assert not persons_commits.take_persons(repo, agent.path)
    person.git("switch", "-q", "crew-7")
    person.commit({"p.txt": "p\n"})
    person.git("switch", "-q", "main")
    taken = [persons_commits.take_persons(repo, agent.path) for _ in range(2)]
    assert taken == [True, False]
    person.git("update-ref", "-d", "refs/heads/crew-7")
    assert not persons_commits.take_persons(repo, agent.path)
