"""Checkpoints keep everything in a worktree and change nothing in it."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from crew.domain.kernel.errors import Conflict, NotFound
from crew.git import git_command
from crew.git.checkpoints.checkpoints import (
    checkpoints,
    drop_checkpoints,
    restore,
    restore_into_worktree,
    take_checkpoint,
)
from crew.git.checkpoints.snapshots import place_of
from crew.git.repository import commit_of
from crew.git.task_repository.shown_branches import show_newest
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.worktrees import ensure_worktree, remove_worktree, state_of
from git.conftest import agents_git_dir
from git.people import Person
from refusals import raises_code


@pytest.fixture
def agent(repo, tmp_path, kind) -> Person:
    tree = tmp_path / "tree 7"
    ensure_worktree(repo, tree, branch="crew-7", base="main", kind=kind)
    return Person(tree)


def index_of(repo, agent):
    return agents_git_dir(repo, agent.path) / "index"


def take(repo, agent, label="step", at=100.0):
    return take_checkpoint(repo, agent.path, "7", label=label, at=at)


def restored(repo, tmp_path, number=None):
    into = tmp_path / f"restored {number}"
    restore(repo, "7", number, into)
    return Person(into).tree()


def test_it_holds_tracked_and_untracked_files_but_not_ignored_ones(repo, agent, tmp_path):
    agent.write(".gitignore", "*.o\n")
    agent.write("a.txt", "changed\n")
    agent.write("new/ü\nfile", "untracked\n")
    agent.write("x.o", "ignored\n")
    (agent.path / "b.txt").unlink()
    kept = take(repo, agent, label="after step 1\nof many", at=123.7)
    assert (kept.number, kept.label, kept.at) == (1, "after step 1 of many", 123.0)
    assert checkpoints(repo, "7") == [kept]
    assert commit_of(repo, "refs/crew/checkpoints/7/1") == kept.commit
    files = restored(repo, tmp_path)
    expected = agent.tree()
    del expected["x.o"]
    assert files == expected


def test_the_index_and_the_files_stay_byte_for_byte(repo, agent):
    agent.write("a.txt", "staged\n")
    agent.git("add", "a.txt")
    agent.write("a.txt", "staged, then changed\n")
    agent.write("new", "new")
    index, files = index_of(repo, agent).read_bytes(), agent.tree()
    assert take(repo, agent) is not None
    assert index_of(repo, agent).read_bytes() == index
    assert agent.tree() == files
    assert list(index_of(repo, agent).parent.glob("crew-index*")) == []


def test_a_clean_worktree_needs_none_and_costs_one_process_at_most(repo, agent, monkeypatch):
    assert take(repo, agent) is None
    started = []
    run = git_command.spawn_git.run
    monkeypatch.setattr(
        git_command.spawn_git, "run", lambda *a, **k: started.append(a[0]) or run(*a, **k)
    )
    assert take(repo, agent) is None
    assert len(started) <= 1
    agent.commit({"x": "committed"})
    assert take(repo, agent) is None
    assert checkpoints(repo, "7") == []


def test_a_place_is_bound_to_its_git_dir_unless_that_is_lost(repo, agent, tmp_path):
    assert place_of(repo, agent.path).is_bound
    assert place_of(repo, repo.root).is_bound
    assert not place_of(repo, tmp_path).is_bound


def test_the_same_state_is_kept_once(repo, agent):
    agent.write("a.txt", "changed\n")
    assert take(repo, agent).number == 1
    assert take(repo, agent) is None
    agent.write("a.txt", "changed again\n")
    assert take(repo, agent).number == 2
    agent.commit()
    agent.write("a.txt", "x\n")
    assert take(repo, agent).parent == agent.git("rev-parse", "HEAD")
    assert [kept.number for kept in checkpoints(repo, "7")] == [1, 2, 3]


def test_commits_on_a_detached_head_are_kept(repo, agent, kind):
    agent.git("switch", "-q", "--detach")
    assert take(repo, agent) is None
    lost = agent.commit({"only.txt": "here\n"})
    kept = take(repo, agent)
    if kind == "own":
        assert commit_of(repo, "crew-7") == lost  # the task's branch follows its HEAD
    else:
        assert kept.parent == lost
    assert take(repo, agent) is None


def test_a_merge_in_progress_is_kept_and_goes_on(repo, agent, person, tmp_path):
    agent.commit({"a.txt": "agent\n"})
    person.commit({"a.txt": "person\n"})
    show_newest(repo, agent.path, "main")
    agent.git("merge", "main", check=False)
    index = index_of(repo, agent).read_bytes()
    assert take(repo, agent) is not None
    assert index_of(repo, agent).read_bytes() == index
    assert state_of(repo, agent.path).unfinished == "merge"
    assert b"<<<<<<<" in restored(repo, tmp_path)["a.txt"]


def test_a_branch_without_commits_is_kept(repo, agent, tmp_path, kind):
    agent.git("switch", "-q", "--orphan", "fresh")
    agent.write("only", "this\n")
    kept = take(repo, agent)
    assert kept.parent == (commit_of(repo, "crew-7") if kind == "own" else None)
    assert restored(repo, tmp_path) == {"only": b"this\n"}


@pytest.mark.parametrize("index", ["missing", "broken", "empty"])
def test_a_broken_index_does_not_matter(repo, agent, tmp_path, index):
    agent.write("a.txt", "changed\n")
    agent.write("new", "new\n")
    file = index_of(repo, agent)
    if index == "missing":
        file.unlink()
    else:
        file.write_bytes(b"DIRC nonsense" if index == "broken" else b"")
    assert take(repo, agent) is not None
    assert restored(repo, tmp_path) == agent.tree()


@pytest.mark.parametrize("damage", ["git file", "git dir", "pointed elsewhere"])
def test_files_are_kept_even_when_the_worktree_is_broken(repo, agent, tmp_path, damage):
    agent.write("a.txt", "changed\n")
    agent.write("new", "new\n")
    if damage == "git file":
        (agent.path / ".git").unlink()
    elif damage == "git dir":
        shutil.rmtree(worktree_admin.git_dir_for(repo, agent.path))
    else:
        other = Person(tmp_path / "other")
        other.path.mkdir()
        other.git("init", "-q")
        (agent.path / ".git").write_text(f"gitdir: {other.path}/.git\n")
    before = agent.tree()
    assert take(repo, agent).parent == commit_of(repo, "crew-7")
    assert restored(repo, tmp_path) == before


def test_a_worktree_that_is_gone_has_nothing_to_keep(repo, agent):
    remove_worktree(repo, agent.path)
    assert take(repo, agent) is None


@pytest.mark.parametrize("commits", [0, 1])
def test_the_files_of_a_repository_inside_the_worktree_are_kept(repo, agent, tmp_path, commits):
    nested = Person(agent.path / "vendor" / "lib")
    nested.path.mkdir(parents=True)
    nested.git("init", "-q")
    nested.write("code.c", "int x;\n")
    if commits:
        nested.commit()
    nested.write("more.c", "int y;\n")
    agent.write("a.txt", "changed\n")
    assert take(repo, agent) is not None
    files = restored(repo, tmp_path)
    assert files["vendor/lib/code.c"] == b"int x;\n"
    assert files["vendor/lib/more.c"] == b"int y;\n"
    assert files["a.txt"] == b"changed\n"


def test_checkpoints_taken_at_once_all_get_a_number(repo, tmp_path):
    agents = []
    for number in range(3):
        tree = tmp_path / f"t{number}"
        ensure_worktree(repo, tree, branch=f"crew-{number}", base="main")
        agents.append(Person(tree))
        agents[-1].write("a.txt", f"{number}\n")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda agent: take(repo, agent), agents))
    assert [kept.number for kept in checkpoints(repo, "7")] == [1, 2, 3]


def test_restoring_takes_any_number_and_never_overwrites(repo, agent, tmp_path):
    agent.write("a.txt", "one\n")
    take(repo, agent)
    agent.write("a.txt", "two\n")
    take(repo, agent)
    assert restored(repo, tmp_path, 1)["a.txt"] == b"one\n"
    assert restored(repo, tmp_path)["a.txt"] == b"two\n"
    with pytest.raises(NotFound) as refused:
        restore(repo, "7", 9, tmp_path / "x")
    assert "1, 2" in refused.value.hint
    with pytest.raises(NotFound):
        restore(repo, "8", None, tmp_path / "x")
    with pytest.raises(Conflict):
        restore(repo, "7", 1, agent.path)
    (tmp_path / "empty").mkdir()
    restore(repo, "7", 1, tmp_path / "empty")
    assert (tmp_path / "empty" / "a.txt").read_text() == "one\n"
    assert not (tmp_path / "empty" / ".git").exists()


def test_a_restore_that_was_killed_leaves_no_half_folder(repo, agent, tmp_path):
    agent.write("a.txt", "one\n")
    kept = take(repo, agent)
    half = tmp_path / f".out.crew-restore-{kept.commit[:12]}"
    half.mkdir()
    (half / "a.txt").write_text("o")
    restore(repo, "7", None, tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_text() == "one\n"
    assert not half.exists()


def test_a_lost_worktree_gets_its_work_back_as_uncommitted_changes(repo, agent):
    agent.commit({"done.txt": "done\n"})
    agent.write("a.txt", "changed\n")
    agent.write("new.txt", "new\n")
    (agent.path / "b.txt").unlink()
    before = agent.tree()
    kept = take(repo, agent)
    remove_worktree(repo, agent.path)
    head = ensure_worktree(repo, agent.path, branch="crew-7", base="main")
    restore_into_worktree(repo, agent.path, kept.commit)
    assert agent.tree() == before
    assert state_of(repo, agent.path).head == head
    assert sorted(state_of(repo, agent.path).changed) == ["a.txt", "b.txt", "new.txt"]
    with pytest.raises(Conflict):
        restore_into_worktree(repo, agent.path, kept.commit)


def test_a_half_restored_worktree_is_restored_whole(repo, agent):
    agent.write("a.txt", "changed\n")
    agent.write("new.txt", "new\n")
    before = agent.tree()
    kept = take(repo, agent)
    remove_worktree(repo, agent.path)
    ensure_worktree(repo, agent.path, branch="crew-7", base="main")
    (worktree_admin.git_dir_for(repo, agent.path) / "crew-restoring").write_text(kept.commit)
    agent.write("a.txt", "cha")
    restore_into_worktree(repo, agent.path, kept.commit)
    assert agent.tree() == before


def test_a_branch_that_moved_on_is_not_taken_back(repo, agent):
    agent.write("new.txt", "new\n")
    kept = take(repo, agent)
    (agent.path / "new.txt").unlink()
    agent.commit({"b.txt": "later\n"})
    restore_into_worktree(repo, agent.path, kept.commit)
    assert (agent.path / "b.txt").read_text() == "later\n"
    assert state_of(repo, agent.path).changed == ("new.txt",)


def test_a_checkpoint_that_clashes_with_the_branch_is_refused(repo, agent):
    agent.write("b.txt", "kept\n")
    kept = take(repo, agent)
    agent.commit({"b.txt": "later\n"})
    with raises_code(Conflict, "checkpoint_clashes", "b.txt"):
        restore_into_worktree(repo, agent.path, kept.commit)
    assert state_of(repo, agent.path).changed == ()


def test_old_checkpoints_are_dropped(repo, agent):
    for number in range(3):
        agent.write("a.txt", f"{number}\n")
        take(repo, agent, at=100.0 * number + 100)
    assert drop_checkpoints(repo, older_than=250) == 2
    assert drop_checkpoints(repo, older_than=250) == 0
    assert [kept.number for kept in checkpoints(repo, "7")] == [3]


def test_a_state_whose_checkpoint_was_dropped_is_kept_again(repo, agent):
    agent.write("a.txt", "changed\n")
    assert take(repo, agent, at=100) is not None
    drop_checkpoints(repo, older_than=200)
    assert take(repo, agent, at=300) is not None


def test_numbers_go_on_after_the_refs_were_packed(repo, agent, person):
    agent.write("a.txt", "one\n")
    take(repo, agent)
    person.git("pack-refs", "--all")
    assert take(repo, agent) is None
    agent.write("a.txt", "two\n")
    assert take(repo, agent).number == 2


def test_the_next_checkpoint_needs_no_list_of_the_former_ones(repo, agent, monkeypatch):
    agent.write("a.txt", "one\n")
    take(repo, agent)
    monkeypatch.setattr("crew.git.checkpoints.checkpoints.checkpoints", None)
    assert take(repo, agent) is None
    agent.write("a.txt", "two\n")
    assert take(repo, agent).number == 2


def objects_kib(repo):
    counts = git_command.git(repo.common_dir, "count-objects", "-v").splitlines()
    values = dict(line.split(": ") for line in counts)
    return int(values["size"]) + int(values["size-pack"])


def test_a_large_file_without_a_commit_is_kept_only_by_the_last_checkpoint(repo, agent, tmp_path):
    large = agent.path / "large.bin"
    before = objects_kib(repo)
    for number in (1, 2):
        large.write_bytes(os.urandom(2**20))
        agent.write("a.txt", f"{number}\n")
        kept = take_checkpoint(repo, agent.path, "7", label="step", at=100.0, max_bytes=2**20 - 1)
        assert kept.notes.left_out == ("large.bin (1.0 MB)",)
        assert "large.bin" not in restored(repo, tmp_path, number)
    assert objects_kib(repo) - before < 512
    assert large.stat().st_size == 2**20
    take_checkpoint(repo, agent.path, "7", label="last", at=100.0, with_ignored=True)
    assert "large.bin" in restored(repo, tmp_path, 3)


def test_a_large_file_that_head_has_is_kept_by_every_checkpoint(repo, agent, tmp_path):
    agent.write("a.txt", "long\n" * 1000)
    kept = take_checkpoint(repo, agent.path, "7", label="step", at=100.0, max_bytes=100)
    assert kept.notes.left_out == ()
    assert restored(repo, tmp_path)["a.txt"] == agent.tree()["a.txt"]


def test_git_frees_the_space_of_dropped_checkpoints(repo, agent, tmp_path):
    git_command.git(repo.common_dir, "config", "core.logAllRefUpdates", "always")
    before = objects_kib(repo)
    (agent.path / "large.bin").write_bytes(os.urandom(2**20))
    take(repo, agent, at=100.0)
    (agent.path / "large.bin").unlink()
    assert objects_kib(repo) - before > 900
    assert drop_checkpoints(repo, older_than=200.0, tasks={"8"}) == 0
    assert drop_checkpoints(repo, older_than=200.0, tasks={"7"}) == 1
    git_command.git(repo.common_dir, "gc", "--quiet", "--prune=now")
    assert objects_kib(repo) - before < 512
