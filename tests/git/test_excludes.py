"""Patterns that git ignores in one worktree, wherever the repository is."""

import os
from pathlib import Path

import pytest

from crew.git.repository import find_repository
from crew.git.task_repository.store_objects import quoted
from crew.git.worktrees.excludes import exclude_in_worktree, pattern_for
from crew.git.worktrees.worktrees import ensure_worktree, state_of
from git.people import Person


@pytest.fixture
def odd(tmp_path) -> Person:
    """A repository whose path has each character that settings of git must escape."""
    person = Person(tmp_path / 'back\\slash "quoted" [x]*')
    person.path.mkdir()
    person.git("init", "-q")
    person.commit({"a.txt": "a\n"})
    return person


def test_patterns_hold_in_one_worktree_of_an_oddly_named_repository(odd, kind):
    repo = find_repository(odd.path)
    trees = [Person(odd.path.parent / name) for name in ("one", "two")]
    for tree in trees:
        ensure_worktree(repo, tree.path, branch=f"crew-{tree.path.name}", base="main", kind=kind)
    exclude_in_worktree(repo, trees[0].path, ["*.tmp", "*.tmp"])
    for tree in (*trees, odd):
        tree.write("x.tmp", "x\n")
    shown = [tree.git("status", "--porcelain") for tree in (*trees, odd)]
    assert shown == ["", "?? x.tmp", "?? x.tmp"]
    seen = [state_of(repo, tree.path) for tree in trees]
    assert [(one.changed, one.ignored) for one in seen] == [((), ("x.tmp",)), (("x.tmp",), ())]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("plain", "/plain"),
        ("a*b?[c]", r"/a\*b\?\[c]"),
        ("back\\slash", r"/back\\slash"),
        ("line\nend", "/line?end"),
        ("two spaces  ", r"/two spaces\ \ "),
    ],
)
def test_a_pattern_matches_exactly_one_path(name, pattern):
    assert pattern_for(name) == pattern


def test_a_path_is_quoted_for_a_list_of_object_folders(tmp_path):
    assert quoted(tmp_path / 'a\\b"c\nd') == f'"{tmp_path}/a\\\\b\\"c\\nd"'


@pytest.mark.parametrize("text", ["*.log", "*.log\n", ""])
def test_what_a_person_ignores_everywhere_stays_ignored(repo, person, tmp_path, kind, text):
    everywhere = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git/ignore"
    everywhere.parent.mkdir(parents=True, exist_ok=True)
    everywhere.write_text(text)
    tree = Person(tmp_path / "tree")
    ensure_worktree(repo, tree.path, branch="crew-7", base="main", kind=kind)
    exclude_in_worktree(repo, tree.path, ["*.tmp"])
    for name in ("x.tmp", "x.log"):
        tree.write(name, "x\n")
    shown = () if text else ("x.log",)
    assert tree.git("status", "--porcelain") == "".join(f"?? {name}" for name in shown)
    assert state_of(repo, tree.path).changed == shown


def test_the_file_that_a_person_configured_is_read_instead(repo, person, tmp_path):
    (tmp_path / "mine").write_text("*.log")
    person.git("config", "core.excludesFile", str(tmp_path / "mine"))
    tree = Person(tmp_path / "tree")
    ensure_worktree(repo, tree.path, branch="crew-7", base="main", kind="linked")
    exclude_in_worktree(repo, tree.path, ["*.tmp"])
    for name in ("x.tmp", "x.log"):
        tree.write(name, "x\n")
    assert tree.git("status", "--porcelain") == ""
