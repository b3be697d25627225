"""Folders that an agent replaced are moved out of the way, and given up if nothing else helps."""

import os

import pytest

from crew.git.worktrees.folder_removal import (
    REPLACED,
    abandon,
    delete_empty,
    set_aside_repository,
    set_aside_stranger,
)
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.git.worktrees.worktrees import ensure_detached, ensure_worktree, remove_worktree


@pytest.fixture
def tree(repo, tmp_path, kind):
    path = tmp_path / "tree"
    ensure_worktree(repo, path, branch="crew-7", base="main", kind=kind)
    return path


def kept(git_dir):
    return [path.name for path in git_dir.iterdir() if path.name.startswith(REPLACED)]


def test_a_repository_in_place_of_the_own_one_is_kept_and_other_things_are_deleted(repo, tree):
    git_dir = git_dir_for(repo, tree)
    (tree / ".git").unlink()
    (tree / ".git").mkdir()
    (tree / ".git" / "mine").write_text("x")
    set_aside_repository(git_dir, tree)
    (name,) = kept(git_dir)
    assert (git_dir / name / "mine").read_text() == "x"
    (tree / ".git").symlink_to(git_dir)
    set_aside_repository(git_dir, tree)
    set_aside_repository(git_dir, tree)  # there is none: a repeat
    assert (kept(git_dir), os.path.lexists(tree / ".git")) == ([name], False)


def test_a_link_or_a_file_in_place_of_a_worktree_is_moved_away(repo, tree, tmp_path):
    git_dir = git_dir_for(repo, tree)
    set_aside_stranger(git_dir, tree)
    assert tree.is_dir()
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to(tree)
    file.write_text("x")
    for one in (link, file):
        set_aside_stranger(git_dir, one)
    assert not os.path.lexists(link)
    assert (len(kept(git_dir)), file.exists(), tree.is_dir()) == (2, False, True)


def test_an_abandoned_worktree_is_gone_with_its_git_dir(repo, tmp_path, kind):
    path = tmp_path / ".gate-1"
    ensure_detached(repo, path, "main", kind=kind)
    git_dir = git_dir_for(repo, path)
    abandon(repo, path)
    assert (path.exists(), git_dir.exists(), repo.common_dir.exists()) == (False, False, True)
    path.write_text("in its place")
    abandon(repo, path)
    assert not path.exists()
    ensure_detached(repo, path, "main", kind=kind)
    assert (path / "a.txt").exists()


def test_only_an_empty_folder_is_deleted(tmp_path):
    folder = tmp_path / "folder"
    delete_empty(folder)
    folder.mkdir()
    (folder / ".git").write_text("gitdir: x")
    delete_empty(folder)
    assert not folder.exists()
    folder.mkdir()
    (folder / "work").write_text("x")
    with pytest.raises(OSError, match="not empty"):
        delete_empty(folder)
    assert (folder / "work").exists()


def test_a_worktree_with_folders_that_its_owner_may_not_change_is_removed(repo, tree):
    (tree / "closed" / "inner").mkdir(parents=True)
    (tree / "closed" / "inner" / "file").write_text("x")
    for folder in (tree / "closed" / "inner", tree / "closed"):
        folder.chmod(0o500)
    remove_worktree(repo, tree)
    assert not tree.exists()
    assert [path.name for path in tree.parent.iterdir() if "tree" in path.name] == []
