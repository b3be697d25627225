"""Real repositories for the git layer, shut off from whoever runs the tests."""

from pathlib import Path

import pytest

from crew.git.repository import Repository, find_repository
from crew.git.worktrees.worktree_admin import Kind, git_dir_for, named_by_worktree
from git.people import Person
from repositories import lay_repository
from surroundings import own_home


@pytest.fixture(autouse=True)
def lonely(tmp_path_factory):
    with own_home(tmp_path_factory):
        yield


@pytest.fixture
def person(tmp_path) -> Person:
    """Ann in her checkout, whose path has a space and letters outside ASCII."""
    path = tmp_path / "my prójects" / "repo"
    lay_repository(path, {"a.txt": "a1\na2\na3\n", "b.txt": "b\n", "sub/c.txt": "c\n"})
    return Person(path)


@pytest.fixture
def repo(person) -> Repository:
    return find_repository(person.path)


@pytest.fixture(params=["own", "linked"])
def kind(request) -> Kind:
    """Both kinds of worktrees: with a repository of its own, and a plain `git worktree`."""
    return request.param


def agents_git_dir(repo: Repository, path: Path) -> Path:
    """The git dir that an agent's git uses in this worktree."""
    git_dir = git_dir_for(repo, path)
    assert git_dir is not None
    return named_by_worktree(git_dir)


@pytest.fixture
def marker(tmp_path) -> Path:
    """A file that exists only if a program from the repository's configuration was run."""
    return tmp_path / "fired"
