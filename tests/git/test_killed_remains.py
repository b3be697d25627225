"""What a killed crew and its killed gits left in the repository is found and removed."""

import os
import time
from types import SimpleNamespace

import pytest

from crew.domain.rows.task import Task
from crew.git.branches import claim_branch
from crew.git.killed_remains import (
    OLD_S,
    clear_crews_locks,
    crews_locks,
    half_made,
    persons_locks,
    places_of_git,
    sweep_half_made,
)
from crew.git.worktrees import worktree_list
from crew.git.worktrees.worktrees import ensure_worktree
from crew.runner.outside import local_machine
from git.people import Person


@pytest.fixture
def worktrees(repo, tmp_path):
    folder = tmp_path / "trees"
    ensure_worktree(repo, folder / "7", branch="crew-7", base="main")
    Person(repo.root).git("update-ref", "refs/crew/branches/crew-7", "main")
    return folder


def leave(*files, age_s=0.0):
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (time.time() - age_s,) * 2)


def test_locks_on_refs_that_only_crew_writes_go_and_no_other(repo, person, worktrees):
    crews = [
        repo.common_dir / name
        for name in (
            "refs/heads/crew-7.lock",
            "refs/crew/landed/main.lock",
            "packed-refs.lock",
            "packed-refs.new",
        )
    ]
    persons = [
        repo.common_dir / name for name in ("index.lock", "HEAD.lock", "refs/heads/main.lock")
    ]
    others = [repo.common_dir / "refs/heads/crew-mine.lock", repo.common_dir / "refs/tags/x.lock"]
    leave(*crews, *persons, *others)
    assert set(crews_locks(repo)) == set(crews)
    assert persons_locks(repo, ["main"]) == tuple(persons)
    clear_crews_locks(repo, patience_s=5)
    assert not any(lock.exists() for lock in crews)
    assert all(lock.exists() for lock in (*persons, *others))


def test_the_lock_on_a_target_goes_if_crew_was_moving_it_to_what_landed(repo, person):
    before = person.git("rev-parse", "main")
    landed = person.git("commit-tree", "-p", before, "-m", "landed", "main^{tree}")
    person.git("update-ref", "refs/crew/landed/main", landed)
    lock = repo.common_dir / "refs" / "heads" / "main.lock"
    lock.write_text(f"{before}\n")
    clear_crews_locks(repo, patience_s=5)
    assert lock.exists()
    lock.write_text(f"{landed}\n")
    clear_crews_locks(repo, patience_s=5)
    assert not lock.exists()


def test_a_lock_stays_while_a_git_runs_in_a_worktree(repo, worktrees):
    assert {repo.root, repo.common_dir, worktrees / "7"} <= set(places_of_git(repo))


def test_half_made_files_go_and_a_young_copy_stays(repo, worktrees):
    crew_git = repo.common_dir / "crew" / "folders" / "7"
    gone = [
        repo.common_dir / "crew-new-1" / "HEAD",
        repo.common_dir / "crew-gone-1" / "HEAD",
        worktrees / ".9.crew-gone-1" / "deep" / "file",
    ]
    old = [
        repo.common_dir / "crew-index-1",
        crew_git / "crew-index-2",
        crew_git / "crew-in-1.pack",
        repo.common_dir / "objects" / "ab" / "tmp_obj_1",
        repo.common_dir / "objects" / "pack" / "tmp_pack_1",
    ]
    young = [repo.common_dir / "crew-index-3", repo.common_dir / "objects" / "ab" / "tmp_obj_2"]
    leave(*gone, *young)
    leave(*old, age_s=OLD_S + 60)
    (crew_git.parent / "8").mkdir()  # killed before its files came
    gone[-1].parent.chmod(0o500)
    assert len(half_made(repo, worktrees)) == len(gone) + len(old) + 1
    sweep_half_made(repo, worktrees)
    assert half_made(repo, worktrees) == ()
    assert not any(file.exists() for file in (*gone, *old))
    assert all(file.exists() for file in young)
    assert (worktrees / "7" / "a.txt").exists()
    assert crew_git.is_dir()


def test_the_mark_of_a_branch_goes_after_the_branch(repo, worktrees, monkeypatch):
    """A git that dies while it deletes the branch leaves a lock that is known to be crew's."""
    order = []
    monkeypatch.setattr(worktree_list, "delete_branch", lambda *_, **__: order.append("branch"))
    monkeypatch.setattr(worktree_list, "delete_ref", lambda *_, **__: order.append("mark"))
    worktree_list.delete_made_branch(repo, "crew-7")
    assert order == ["branch", "mark"]


def test_a_task_s_branch_whose_target_was_deleted_is_kept_until_the_person_has_its_commits(
    repo, person
):
    person.git("switch", "-q", "-c", "feature")
    work = person.commit({"a.txt": "work"})
    assert claim_branch(repo, "crew-7", base=work)
    person.git("switch", "-q", "main")
    person.git("branch", "-q", "-D", "feature")
    outside = SimpleNamespace(workplace=SimpleNamespace(repo=repo))
    task = Task(id="7", branch="crew-7", target="feature")
    assert not local_machine.LocalOutside._has_landed(outside, task)
    person.git("merge", "-q", work)
    assert local_machine.LocalOutside._has_landed(outside, task)
