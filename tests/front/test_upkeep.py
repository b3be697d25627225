"""Tidying up, from the command line and from Python: prune, clean, doctor --repair, restore."""

import os
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from crew import Crew
from crew.store.runner_lock import LockHeld
from front.conftest import commit_in, refs, worktree
from git.keys import ssh_key


def test_prune_removes_nothing_of_a_task_that_is_open(stuck):
    said = stuck.ok("prune", "--branches", "--yes", "--json")
    nothing = {"worktrees": [], "branches": [], "kept_branches": [], "old_checkpoints": 0}
    assert said.json == {"removed": False, **nothing}
    assert worktree(stuck).is_dir()
    assert refs(stuck, "refs/heads/crew-*") == ["refs/heads/crew-1"]


def test_prune_says_what_it_would_do_and_asks(closed):
    said = closed.ok("prune", "--dry-run", "--json")
    assert said.json["worktrees"] == [str(worktree(closed))]
    assert (said.json["removed"], said.json["kept_branches"]) == (False, ["crew-1"])
    assert "of its uncommitted changes" in said.err
    assert closed.crew("prune").code == 2
    assert worktree(closed).is_dir()


def test_prune_keeps_a_branch_that_is_not_merged_and_all_that_was_not_committed(closed):
    closed.ok("prune", "--yes")
    assert not worktree(closed).exists()
    assert refs(closed, "refs/heads/crew-*") == ["refs/heads/crew-1"]
    folder = Path(closed.ok("restore", "1").lines[0])
    assert {path.name for path in folder.iterdir()} == {"loose", "made", "readme"}
    assert closed.ok("prune", "--yes").err.count("removes") == 1  # only the word on --branches


def test_a_branch_that_goes_stays_reachable_through_a_checkpoint(closed):
    head = closed.git("rev-parse", "crew-1")
    said = closed.ok("prune", "--branches", "--yes", "--json")
    assert said.json["branches"] == ["crew-1"]
    assert refs(closed, "refs/heads/crew-*") == []
    assert refs(closed, "refs/crew/branches/") == []
    kept = refs(closed, "refs/crew/checkpoints/1/")
    assert any(head in closed.git("rev-list", ref) for ref in kept)


def test_a_clean_worktree_s_branch_is_kept_before_it_goes(closed):
    (worktree(closed) / "loose").unlink()
    commit_in(worktree(closed), "last", "in no checkpoint\n")
    head = closed.git("rev-parse", "crew-1")
    closed.ok("prune", "--branches", "--yes")
    kept = refs(closed, "refs/crew/checkpoints/1/")
    assert any(head in closed.git("rev-list", ref) for ref in kept)


def test_a_branch_of_a_task_that_is_gone_is_pruned_and_a_person_s_one_is_not(closed):
    for file in (closed.root / ".crew/tasks/default").glob("1.*"):
        file.unlink()
    closed.git("branch", "crew-5")
    closed.git("branch", "crew-feature")
    assert closed.ok("prune", "--branches", "--yes", "--json").json["branches"] == ["crew-1"]
    assert refs(closed, "refs/heads/crew-*") == ["refs/heads/crew-5", "refs/heads/crew-feature"]


def test_what_is_open_in_another_namespace_is_not_pruned(closed):
    tasks = closed.root / ".crew/tasks"
    shutil.copytree(tasks / "default", tasks / "other")
    meta = tasks / "other" / "1.meta.json"
    meta.write_text(meta.read_text().replace('"closed"', '"in_progress"'))
    closed.ok("prune", "--branches", "--yes")
    assert worktree(closed).is_dir()


def test_a_task_that_cannot_be_read_is_not_pruned(closed):
    (closed.root / ".crew/tasks/default/1.meta.json").write_text("{")
    closed.ok("prune", "--branches", "--yes")
    assert worktree(closed).is_dir()


def test_a_branch_that_somebody_looks_at_is_kept(closed, tmp_path):
    shutil.rmtree(worktree(closed))
    closed.git("worktree", "prune")
    closed.git("worktree", "add", "-q", str(tmp_path / "mine"), "crew-1")
    closed.ok("prune", "--branches", "--yes")
    assert refs(closed, "refs/heads/crew-*") == ["refs/heads/crew-1"]
    assert (tmp_path / "mine" / "made").exists()


def test_prune_has_the_runner_remove_worktrees_and_leaves_branches_for_later(closed, running):
    running()
    said = closed.ok("prune", "--branches", "--yes", "--json")
    assert "a runner is up: branches" in said.err
    assert (said.json["branches"], said.json["kept_branches"]) == ([], ["crew-1"])
    assert not worktree(closed).exists()
    assert closed.ok("show", "1", "--json").json["worktree"] is None


def test_what_a_prune_removed_is_named_no_more(closed):
    closed.ok("prune", "--branches", "--yes")
    task = closed.ok("show", "1", "--json").json
    assert (task["worktree"], task["branch"]) == (None, None)
    triggers = [one["trigger"] for one in closed.ok("events", "--json").json]
    assert {"prune_asked", "worktree_removed", "branch_removed"} <= set(triggers)


DEATHS = (
    "git.commit_checkpoint.after",
    "git.advance.after",
    "git.set_aside.after",
    "git.delete_set_aside.before",
    "git.commit_checkpoint.before",
    "git.advance.before",
    "git.delete_ref.before",
    "git.delete_ref.after",
)
"""In the order in which a prune comes by them: the worktree, its branch, the mark of the branch."""


@pytest.mark.timeout(120)
def test_a_prune_that_dies_again_and_again_loses_nothing_and_is_finished_at_last(closed):
    head = closed.git("rev-parse", "crew-1")
    (worktree(closed) / "later").write_text("not in any checkpoint yet\n")
    for point in DEATHS:
        died = closed.crew("prune", "--branches", "--yes", CREW_CRASH_AT=point)
        assert died.code == -signal.SIGKILL, point
    closed.ok("prune", "--branches", "--yes")
    assert not worktree(closed).exists()
    assert refs(closed, "refs/heads/crew-*") == refs(closed, "refs/crew/branches/") == []
    kept = refs(closed, "refs/crew/checkpoints/1/")
    assert any(head in closed.git("rev-list", ref) for ref in kept)
    assert any("later" in closed.git("ls-tree", "--name-only", ref) for ref in kept)


def test_prune_and_restore_from_python(closed):
    with Crew(closed.root) as crew:
        shown = crew.prune(branches=True, dry_run=True)
        assert [one.path for one in shown.worktrees] == [str(worktree(closed))]
        assert worktree(closed).is_dir()
        assert crew.prune(branches=True) == shown
        assert crew.prune(branches=True).is_nothing
        triggers = [event.trigger for event in crew.events(subject="task:1")]
        assert {"prune_asked", "worktree_removed", "branch_removed"} <= set(triggers)
        assert refs(closed, "refs/heads/crew-*") == []
        numbers = [one["number"] for one in crew.checkpoints("1")]
        folder = crew.restore("#1", numbers[-2], into=closed.root.parent / "back")
        assert (folder / "loose").read_text() == "not committed\n"
        assert crew.restore("1") == worktree(closed, f"restored-1-{numbers[-1]}")


def test_prune_from_python_asks_the_runner_that_is_up(closed, running):
    running()
    with Crew(closed.root) as crew:
        done = crew.prune(branches=True)
        assert (len(done.worktrees), done.branches, done.is_postponed) == (1, (), True)
        assert not worktree(closed).exists()
        with pytest.raises(LockHeld):
            crew.clean()


def test_clean_from_python_leaves_tasks_and_checkpoints_only(stuck):
    with Crew(stuck.root) as crew:
        assert list(crew.events())
        shown = crew.clean(dry_run=True)
        assert (shown.worktrees, shown.tasks) == ((str(worktree(stuck)),), ("1",))
        assert list(crew.events())
        assert crew.clean() == shown
        assert list(crew.events()) == []
        assert [task.status for task in crew.tasks()] == ["todo"]
        assert (crew.restore("1") / "loose").exists()
        assert crew.new_task("second").id == "2"
    assert len(stuck.ok("list", "--json").json) == 2


CLEAN_DEATHS = (
    "git.commit_checkpoint.after",
    "git.set_aside.after",
    "tasks.put_in_place.before",
    "runner.delete_state.before",
    "runner.delete_state.after",
)


@pytest.mark.timeout(120)
def test_a_clean_that_dies_again_and_again_is_finished_at_last(stuck):
    for point in CLEAN_DEATHS:
        died = stuck.crew("clean", "--yes", CREW_CRASH_AT=point)
        assert died.code == -signal.SIGKILL, point
    stuck.ok("init")
    stuck.ok("clean", "--yes")
    assert not worktree(stuck).exists()
    assert stuck.status("1") == "todo"
    assert (Path(stuck.ok("restore", "1").lines[0]) / "loose").exists()


def test_a_repair_leaves_facts_of_the_worktree_that_a_row_names(closed):
    for file in (closed.root / ".crew/tasks/default").glob("1.*"):
        file.unlink()
    with Crew(closed.root) as crew:
        (wrong,) = [one for one in crew.doctor() if one.is_wrong]
        assert (wrong.check, str(worktree(closed)) in wrong.message) == ("worktrees", True)
        (mended,) = [one for one in crew.doctor(repair=True) if one.is_repaired]
        assert mended.check == "worktrees"
        assert "worktree_removed" in [event.trigger for event in crew.events(subject="task:1")]
        assert not worktree(closed).exists()
        assert not any(one.is_wrong for one in crew.doctor())


def test_doctor_names_what_killed_gits_left_and_repairs_what_is_crews(scene):
    git_dir = scene.root / ".git"
    crews = [git_dir / "refs" / "crew" / "landed" / "main.lock", git_dir / "packed-refs.lock"]
    half = git_dir / "crew-new-1"
    crews[0].parent.mkdir(parents=True)
    half.mkdir()
    for lock in (*crews, git_dir / "index.lock"):
        lock.touch()
        os.utime(lock, (time.time() - 7300,) * 2)
    said = scene.crew("doctor", "--json")
    wrong = [one for one in said.json if one["state"] == "wrong"]
    assert said.code == 1
    assert {one["check"] for one in wrong} == {"locks", "leftovers"}
    assert any(one["fix"] == f"rm {shlex.quote(str(git_dir / 'index.lock'))}" for one in wrong)
    assert any("packed-refs.lock 2 hours ago" in one["message"] for one in wrong)
    assert any("index.lock was left 2 hours ago" in one["message"] for one in wrong)
    assert scene.crew("doctor", "--repair").code == 1, "a lock of the person stays"
    assert not any(file.exists() for file in (*crews, half))
    (git_dir / "index.lock").unlink()
    scene.ok("doctor")


def test_doctor_says_which_submodules_are_empty_in_tasks(scene):
    source = scene.root.parent / "library"
    scene.git("clone", "-q", str(scene.root), str(source))
    allowed = ("-c", "protocol.file.allow=always")
    scene.git(*allowed, "submodule", "--quiet", "add", str(source), "lib")
    scene.git("commit", "-q", "-m", "with a library")
    checks = [one["check"] for one in scene.ok("doctor", "--json").json]
    assert "submodules" not in checks
    scene.git("submodule", "--quiet", "deinit", "--force", "lib")
    shutil.rmtree(scene.root / ".git" / "modules" / "lib")
    found = scene.ok("doctor", "--json").json
    (advice,) = [one for one in found if one["check"] == "submodules"]
    assert "the submodule lib is empty" in advice["message"]
    scene.git(*allowed, *advice["fix"].split()[1:])
    assert "submodules" not in [one["check"] for one in scene.ok("doctor", "--json").json]


def test_init_and_doctor_say_what_is_not_signed_and_doctor_tries_the_key(scene, tmp_path):
    def git(*words):
        subprocess.run(["git", *words], cwd=scene.root, check=True, capture_output=True)

    assert "sign" not in scene.ok("init").out
    assert "sign" not in [one["check"] for one in scene.ok("doctor", "--json").json]
    git("config", "commit.gpgSign", "true")
    told = (
        "git signs your commits; agents commit unsigned, since the sandbox does not have your key"
    )
    for said in (scene.ok("init").out, scene.ok("doctor").out):
        assert [line for line in said.splitlines() if told in line]
        assert "crew config set merge.sign true" in said
    for key, value in ssh_key(tmp_path / "keys", passphrase="secret").items():
        git("config", key, value)
    scene.ok("config", "set", "merge.sign", "true")
    assert told not in scene.ok("init").out
    said = scene.crew("doctor")
    assert said.code == 1
    assert "the key that [merge] sign uses does not sign" in said.out
    change = ["ssh-keygen", "-q", "-p", "-P", "secret", "-N", "", "-f", str(tmp_path / "keys/key")]
    subprocess.run(change, check=True, capture_output=True)
    assert "your key signs crew's merges (ssh " in scene.ok("doctor").out


def test_a_landing_that_waits_for_a_key_is_told_everywhere(scene, tmp_path):
    for key, value in ssh_key(tmp_path / "keys", passphrase="secret").items():
        subprocess.run(["git", "config", key, value], cwd=scene.root, check=True)
    scene.ok("config", "set", "merge.sign", "true")
    task = scene.ok("new", "--title", "one", "--json").json["id"]
    said = scene.crew("run", "--drain")
    words = "the key that [merge] sign uses does not sign"
    assert (said.code, words in said.err) == (6, True), said.err
    for command in ("ps", "list", "doctor"):
        shown = scene.crew(command)
        told = shown.out + shown.err
        assert [line for line in told.splitlines() if words in line], (command, told)
    merged = scene.crew("merge", task)
    assert (merged.code, words in merged.err) == (75, True), merged.err
