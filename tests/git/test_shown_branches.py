"""In a task's own repository `main` is the `main` of now, unless the agent is on it."""

import pytest

from crew.git.refs import advance
from crew.git.repository import commit_of
from crew.git.task_repository.shown_branches import show_newest
from crew.git.worktrees.worktrees import ensure_worktree
from git.people import Person


@pytest.fixture
def agent(repo, tmp_path) -> Person:
    tree = tmp_path / "trees" / "7"
    ensure_worktree(repo, tree, branch="crew-7", base="main", kind="own")
    return Person(tree)


def test_a_new_commit_of_the_target_is_shown(repo, person, agent):
    person.commit({"new.txt": "x\n"}, "newer")
    show_newest(repo, agent.path, "main")
    assert agent.git("rev-parse", "main") == person.git("rev-parse", "main")
    assert agent.git("status", "--porcelain") == ""


def test_landed_work_is_shown_before_it_is_delivered(repo, person, agent):
    landed = person.git("commit-tree", "-m", "landed", "-p", "main", "main^{tree}")
    advance(repo, "refs/crew/landed/main", to=landed, expected=None)
    show_newest(repo, agent.path, "main")
    assert agent.git("rev-parse", "main") == landed
    assert commit_of(repo, "refs/heads/main") != landed


def test_an_agent_on_the_branch_itself_is_left_alone(repo, person, agent):
    agent.git("checkout", "-q", "main")
    before = agent.git("rev-parse", "HEAD")
    person.commit({"new.txt": "x\n"}, "newer")
    show_newest(repo, agent.path, "main")
    assert agent.git("rev-parse", "HEAD") == before


def test_a_link_in_the_way_is_not_followed(repo, person, agent, tmp_path):
    refs = tmp_path / "refs"
    refs.mkdir()
    heads = agent.path / agent.git("rev-parse", "--git-dir") / "refs" / "heads"
    heads.rename(heads.with_name("old"))
    heads.symlink_to(refs)
    person.commit({"new.txt": "x\n"}, "newer")
    show_newest(repo, agent.path, "main")
    assert list(refs.iterdir()) == []
