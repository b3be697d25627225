"""The repository of a folder of gates is as good as new before each gate."""

import os
from pathlib import Path

import pytest

from crew.git.worktrees.worktrees import ensure_detached
from git.conftest import agents_git_dir
from git.people import Person


@pytest.fixture
def gate(repo, tmp_path) -> Path:
    path = tmp_path / "trees" / "gate"
    ensure_detached(repo, path, "main")
    return path


def content_of(folder: Path) -> dict[str, bytes | str]:
    """Each file's bytes and each folder below, as they are on the disk."""
    found = sorted(folder.rglob("*"))
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else "" for p in found}


def made_new(repo, tmp_path) -> dict[str, bytes | str]:
    """What a repository holds that was laid for the same commit just now."""
    path = tmp_path / "trees" / "fresh"
    ensure_detached(repo, path, "main")
    return content_of(agents_git_dir(repo, path))


def link_to_a_precious_file(git_dir: Path, precious: Path) -> None:
    (git_dir / "config").unlink()
    (git_dir / "config").symlink_to(precious)


def second_name_of_a_precious_file(git_dir: Path, precious: Path) -> None:
    (git_dir / "config").unlink()
    os.link(precious, git_dir / "config")


def pipe_in_place_of_head(git_dir: Path, precious: Path) -> None:
    del precious
    (git_dir / "HEAD").unlink()
    os.mkfifo(git_dir / "HEAD")


def folder_in_place_of_head(git_dir: Path, precious: Path) -> None:
    del precious
    (git_dir / "HEAD").unlink()
    (git_dir / "HEAD" / "deep").mkdir(parents=True)


def hooks_and_a_branch(git_dir: Path, precious: Path) -> None:
    (git_dir / "hooks").mkdir()
    (git_dir / "hooks" / "pre-commit").write_text(f"rm {precious}\n")
    (git_dir / "refs" / "heads" / "main").write_text("0" * 40)


def other_settings(git_dir: Path, precious: Path) -> None:
    (git_dir / "config").write_text(f"[core]\n\tfsmonitor = rm {precious}\n")
    (git_dir / "info" / "exclude").write_text("*\n")


def link_in_place_of_a_folder(git_dir: Path, precious: Path) -> None:
    (git_dir / "info" / "exclude").rename(precious.parent / "exclude")
    (git_dir / "info").rmdir()
    (git_dir / "info").symlink_to(precious.parent)


def link_in_place_of_all(git_dir: Path, precious: Path) -> None:
    git_dir.rename(precious.parent / "moved")
    git_dir.symlink_to(precious.parent / "moved")


@pytest.mark.parametrize(
    "leave",
    [
        link_to_a_precious_file,
        second_name_of_a_precious_file,
        pipe_in_place_of_head,
        folder_in_place_of_head,
        hooks_and_a_branch,
        other_settings,
        link_in_place_of_a_folder,
        link_in_place_of_all,
    ],
)
def test_what_a_gate_left_is_gone_at_the_next(repo, gate, tmp_path, leave):
    precious = tmp_path / "outside" / "precious"
    precious.parent.mkdir()
    precious.write_text("mine")
    git_dir = agents_git_dir(repo, gate)
    leave(git_dir, precious)
    ensure_detached(repo, gate, "main")
    assert precious.read_text() == "mine"
    assert not git_dir.is_symlink()
    now, new = content_of(git_dir), made_new(repo, tmp_path)
    now.pop("index")  # the inodes in it are those of other files
    new.pop("index")
    assert now == new
    assert Person(gate).git("status", "--porcelain") == ""


def test_an_unchanged_repository_keeps_its_files(repo, gate):
    git_dir = agents_git_dir(repo, gate)
    before = {name: (git_dir / name).stat().st_ino for name in ("HEAD", "config", "index")}
    ensure_detached(repo, gate, "main")
    assert before == {name: (git_dir / name).stat().st_ino for name in before}


def test_the_next_commit_is_checked_out_in_the_same_files(repo, gate, person):
    git_dir = agents_git_dir(repo, gate)
    inode = (git_dir / "HEAD").stat().st_ino
    person.commit({"a.txt": "other\n"})
    ensure_detached(repo, gate, "main")
    assert (git_dir / "HEAD").stat().st_ino == inode
    assert Person(gate).git("rev-parse", "HEAD") == person.git("rev-parse", "main")
    assert Person(gate).git("status", "--porcelain") == ""
