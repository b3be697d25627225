"""In a task's own repository `main` is the `main` of now, unless the agent is on it."""

import contextlib
import os

import pytest

from crew.git import git_command
from crew.git.refs import advance
from crew.git.repository import commit_of
from crew.git.task_repository.lay_repository import write_excludes
from crew.git.task_repository.shown_branches import (
    is_newest_shown,
    show_branch,
    show_newest,
)
from crew.git.task_repository.take_in import NotTakenIn, seeing
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.git.worktrees.worktrees import ensure_worktree
from git.conftest import agents_git_dir
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


def test_a_branch_that_is_shown_already_is_not_written_again(repo, person, agent):
    ref = agents_git_dir(repo, agent.path) / "refs" / "heads" / "main"
    person.commit({"new.txt": "x\n"}, "newer")
    show_newest(repo, agent.path, "main")
    before = ref.stat().st_ino, ref.stat().st_mtime_ns
    show_newest(repo, agent.path, "main")
    assert (ref.stat().st_ino, ref.stat().st_mtime_ns) == before


def test_whether_the_newest_commit_is_shown_is_told_without_git(repo, person, agent, monkeypatch):
    def is_shown() -> bool:
        return is_newest_shown(repo, agent.path, "main")

    advance(repo, "refs/crew/landed/main", to=person.git("rev-parse", "main"), expected=None)
    person.commit({"new.txt": "x\n"}, "newer")
    assert not is_shown()
    show_newest(repo, agent.path, "main")
    monkeypatch.setattr(git_command, "ask", None)
    assert is_shown()
    (agents_git_dir(repo, agent.path) / "refs" / "heads" / "main").write_text("0" * 40)
    assert not is_shown()


def test_of_a_packed_target_only_git_tells_whether_it_is_shown(repo, person, agent):
    advance(repo, "refs/crew/landed/main", to=person.git("rev-parse", "main"), expected=None)
    person.commit({"new.txt": "x\n"}, "newer")
    show_newest(repo, agent.path, "main")
    assert is_newest_shown(repo, agent.path, "main")
    person.git("pack-refs", "--all")
    assert not is_newest_shown(repo, agent.path, "main")


def test_a_branch_in_a_folder_is_shown_and_a_folder_in_its_place_stays(repo, person, agent):
    person.git("branch", "deep/er/one")
    show_newest(repo, agent.path, "deep/er/one")
    tip = person.git("rev-parse", "deep/er/one")
    assert agent.git("rev-parse", "refs/heads/deep/er/one") == tip
    person.git("branch", "-m", "deep/er/one", "deep/er-two")
    person.git("branch", "deep/er")
    show_newest(repo, agent.path, "deep/er")
    assert agent.git("rev-parse", "refs/heads/deep/er/one") == tip


@pytest.mark.parametrize("make", ["link", "file"])
def test_what_an_agent_puts_in_the_place_of_a_folder_of_refs_stays(
    repo, person, agent, tmp_path, make
):
    (tmp_path / "outside").mkdir()
    heads = agents_git_dir(repo, agent.path) / "refs" / "heads" / "deep"
    heads.symlink_to(tmp_path / "outside") if make == "link" else heads.write_text("x")
    person.git("branch", "deep/one")
    show_newest(repo, agent.path, "deep/one")
    assert list((tmp_path / "outside").iterdir()) == []
    assert heads.is_symlink() is (make == "link")


@pytest.mark.parametrize(
    "way",
    [
        ("refs/heads", lambda repo, git_dir: show_branch(git_dir, "main", "1" * 40)),
        ("info", write_excludes),
        ("objects/info", seeing),
    ],
    ids=["branch", "excludes", "alternates"],
)
def test_a_folder_that_becomes_a_link_after_the_look_is_not_written_through(
    repo, agent, tmp_path, monkeypatch, way
):
    name, write = way
    folder, aside = agents_git_dir(repo, agent.path) / name, tmp_path / "aside"
    (folder / "alternates").unlink(missing_ok=True)
    (tmp_path / "bin").mkdir()
    for file in ("main", "exclude", "alternates"):
        (tmp_path / "bin" / file).write_text("mine\n")

    def swapped(fresh, place, **opened):
        if opened["dst_dir_fd"] is not None:
            folder.rename(aside)
            folder.symlink_to(tmp_path / "bin")
        return replace(fresh, place, **opened)

    replace = os.replace
    monkeypatch.setattr(os, "replace", swapped)
    with contextlib.suppress(NotTakenIn):
        write(repo, git_dir_for(repo, agent.path))
    assert {path.read_text() for path in (tmp_path / "bin").iterdir()} == {"mine\n"}


def test_of_two_tips_the_one_that_has_the_other_is_shown(repo, person, agent):
    first = person.git("rev-parse", "main")
    landed = person.git("commit-tree", "-m", "landed", "-p", "main", "main^{tree}")
    advance(repo, "refs/crew/landed/main", to=landed, expected=None)
    show_newest(repo, agent.path, "main")
    assert agent.git("rev-parse", "main") == landed != first
    person.git("reset", "-q", "--hard", landed)
    later = person.commit({"new.txt": "x\n"}, "on top")
    for _ in range(2):
        show_newest(repo, agent.path, "main")
        assert agent.git("rev-parse", "main") == later
    show_newest(repo, agent.path, "no-such-branch")
    show_newest(repo, person.path, "main")  # no worktree of crew
