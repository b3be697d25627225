"""Real repositories for the git layer, shut off from whoever runs the tests."""

import os
from pathlib import Path

import pytest

from crew.git.repository import Repository, find_repository
from git.people import Person


@pytest.fixture(autouse=True)
def lonely_git(monkeypatch, tmp_path_factory):
    """No configuration and no variables of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "CREW_")):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ann\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def person(tmp_path) -> Person:
    """Ann in her checkout, whose path has a space and letters outside ASCII."""
    path = tmp_path / "my prójects" / "repo"
    path.mkdir(parents=True)
    ann = Person(path)
    ann.git("init", "-q")
    ann.commit({"a.txt": "a1\na2\na3\n", "b.txt": "b\n", "sub/c.txt": "c\n"}, "first")
    return ann


@pytest.fixture
def repo(person) -> Repository:
    return find_repository(person.path)


@pytest.fixture
def marker(tmp_path) -> Path:
    """A file that exists only if a program from the repository's configuration was run."""
    return tmp_path / "fired"
