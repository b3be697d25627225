"""Around a task's work: what it changed, when it is over, and what it leaves behind."""

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from crew.front.cli.tasks.poll import PollTarget
from crew.workplace import find_workplace
from front.conftest import CREW, PATIENCE_S, until

KEEP = "[worktree]\nkeep = true\n"


def worktree(scene, task="1"):
    return scene.root.parent / f"{scene.root.name}-worktrees" / task


def commit_in(folder, name, text):
    (folder / name).write_text(text)
    for args in (["add", name], ["commit", "-q", "-m", f"write {name}"]):
        subprocess.run(["git", *args], cwd=folder, check=True)


def refs(scene, pattern):
    return scene.git("for-each-ref", "--format=%(refname)", pattern).splitlines()


@pytest.fixture
def stuck(scene):
    """Task 1 was begun: its worktree has a commit and a file that is not committed."""
    scene.configure(KEEP)
    scene.ok("new", "--title", "first")
    scene.plan("1", "fail")
    assert scene.crew("run", "--drain").code == 6
    commit_in(worktree(scene), "made", "hello\n")
    (worktree(scene) / "loose").write_text("not committed\n")
    return scene


@pytest.fixture
def closed(stuck):
    """The same, given up; its worktree and its branch are still there."""
    stuck.ok("kill", "A")
    assert "`crew checkpoints 1` lists what was kept" in stuck.ok("close", "1").err
    assert worktree(stuck).is_dir()
    return stuck


def test_diff_shows_what_a_task_changed_and_passes_arguments_on(stuck):
    assert "+hello" in stuck.ok("diff", "1").out
    assert "made | 1 +" in stuck.ok("diff", "#1", "--", "--stat").out
    told = stuck.ok("diff", "1", "--json", "--", "--name-only").json
    assert (told["id"], told["branch"], told["base"]) == ("1", "crew-1", "main")
    assert (told["diff"], told["exit_code"]) == ("made\n", 0)


def test_the_exit_code_of_the_diff_command_is_ours(stuck):
    assert stuck.crew("diff", "1", "--", "--exit-code").code == 1
    said = stuck.crew("diff", "1", "--json", "--", "--exit-code")
    assert (said.code, said.json["exit_code"]) == (1, 1)


def test_no_value_of_a_diff_runs(stuck):
    trap = stuck.folder / "trap"
    for word in (f"$(touch {trap})", f"`touch {trap}`", f"; touch {trap}", f"'; touch {trap}; '"):
        stuck.crew("diff", "1", "--", word)
    stuck.configure('[diff]\ncommand = "printf %s,%s,%s {{.TaskID}} {{.Branch}} {{.Args}}"\n')
    assert stuck.ok("diff", "1", "--", "a $(b) c").out == "1,crew-1,a $(b) c"
    assert not trap.exists()


def test_a_diff_looks_at_the_task_whatever_the_caller_s_git_variables_say(stuck, tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path / "other"], check=True)
    elsewhere = {"GIT_DIR": str(tmp_path / "other" / ".git"), "GIT_WORK_TREE": str(tmp_path)}
    assert "+hello" in stuck.ok("diff", "1", **elsewhere).out


def test_without_a_worktree_the_branch_is_shown_and_nothing_is_left_behind(stuck):
    shutil.rmtree(worktree(stuck))
    stuck.git("worktree", "prune")
    before = stuck.git("worktree", "list")
    assert "+hello" in stuck.ok("diff", "1").out
    assert stuck.git("worktree", "list") == before
    assert list(worktree(stuck).parent.iterdir()) == []


def test_a_task_without_worktree_and_branch_has_no_diff(scene):
    scene.ok("new", "--title", "not begun")
    said = scene.crew("diff", "1")
    assert said.code == 5
    assert "was not started" in said.err
    scene.ok("close", "1")
    assert scene.crew("diff", "1").code == 3
    assert scene.crew("diff", "1", "--json").json["error"]["code"] == "not_found"
    assert scene.crew("diff", "7").code == 3


def test_a_diff_template_that_makes_no_sense_is_refused(stuck):
    stuck.configure('[diff]\ncommand = "git diff {{.Nonsense}}"\n')
    said = stuck.crew("diff", "1")
    assert said.code == 2
    assert "Nonsense" in said.err


def test_the_diff_of_a_merged_task_is_that_of_its_merge(scene):
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain")
    assert "+++ b/file-1" in scene.ok("diff", "1").out


def test_poll_tells_the_change(scene):
    scene.ok("new", "--title", "one")
    waiting = scene.start("poll", "1", "--timeout", "60s")
    until(lambda: _is_waiting(waiting))
    scene.ok("close", "1")
    out, _ = waiting.communicate(timeout=PATIENCE_S)
    assert (waiting.returncode, out) == (0, "1: todo -> closed\n")


def _is_waiting(process):
    """It says so once it knows how the tasks are."""
    return process.stderr.readline().startswith("waiting: ")


def test_poll_sees_a_status_that_lasted_only_a_moment(scene):
    scene.ok("new", "--title", "one")
    waiting = scene.start("wait", "1", "--status", "done", "--json", "--timeout", "60s")
    until(lambda: _is_waiting(waiting))
    scene.ok("run", "--drain")
    out, _ = waiting.communicate(timeout=PATIENCE_S)
    assert waiting.returncode == 0
    assert json.loads(out) == {"id": "1", "from": "in_progress", "to": "done"}


def test_poll_sees_what_somebody_writes_into_a_file(scene):
    scene.ok("new", "--title", "one")
    waiting = scene.start("poll", "1", "--timeout", "60s")
    until(lambda: _is_waiting(waiting))
    file = scene.root / ".crew/tasks/default/1.meta.json"
    file.write_text(file.read_text().replace('"todo"', '"error"'))
    assert waiting.communicate(timeout=PATIENCE_S)[0] == "1: todo -> error\n"


def test_a_file_that_is_half_written_tells_poll_nothing(scene):
    scene.ok("new", "--title", "one")
    file = scene.root / ".crew/tasks/default/1.meta.json"
    whole = file.read_text()
    workplace = find_workplace(scene.root)
    try:
        watch = PollTarget(workplace, ["1"])
        for half in ("", whole[:20]):
            file.write_text(half)
            assert list(watch.changes()) == []
        file.write_text(whole.replace('"todo"', '"closed"'))
        assert [(one.before, one.after) for one in watch.changes()] == [("todo", "closed")]
    finally:
        workplace.db.close()


def test_poll_takes_the_first_of_several_tasks(scene):
    for _ in range(3):
        scene.ok("new", "--title", "x")
    waiting = scene.start("poll", "1", "2", "3", "--status", "closed", "--timeout", "60s")
    until(lambda: _is_waiting(waiting))
    scene.ok("close", "2")
    assert waiting.communicate(timeout=PATIENCE_S)[0] == "2: todo -> closed\n"


def test_poll_answers_at_once_when_it_is_so_already(scene):
    scene.ok("new", "--title", "one")
    assert scene.ok("poll", "1", "--status", "todo").out == "1: todo -> todo\n"
    assert scene.ok("poll", "1", "-s", "done", "-s", "todo", "--json").json["to"] == "todo"


def test_poll_ends_with_124_when_the_time_is_over(scene):
    scene.ok("new", "--title", "one")
    said = scene.crew("poll", "1", "--timeout", "1s")
    assert (said.code, said.out) == (124, "")
    assert "task 1 is todo" in said.err
    assert scene.crew("poll", "1", "--timeout", "0s", "--json").json["error"]["code"] == "timed_out"


def test_nobody_waits_for_a_change_that_cannot_come(scene):
    scene.ok("new", "--title", "one")
    scene.ok("close", "1")
    assert scene.crew("poll", "1").code == 5
    said = scene.crew("poll", "1", "--status", "merged")
    assert said.code == 5
    assert "--status closed" in said.err


def test_poll_refuses_what_does_not_exist(scene):
    scene.ok("new", "--title", "one")
    assert scene.crew("poll", "9").code == 3
    assert scene.crew("poll").code == 2
    assert scene.crew("poll", "1", "--status", "gone").code == 2
    waiting = scene.start("poll", "1", "--timeout", "60s")
    until(lambda: _is_waiting(waiting))
    scene.ok("rm", "1", "--yes")
    _, err = waiting.communicate(timeout=PATIENCE_S)
    assert waiting.returncode in {0, 3}, err  # closed first, then gone: either may be seen


def test_an_interrupted_poll_ends_with_130(scene):
    scene.ok("new", "--title", "one")
    waiting = scene.start("poll", "1")
    until(lambda: _is_waiting(waiting))
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=PATIENCE_S)
    assert waiting.returncode == 130


def test_prune_removes_nothing_of_a_task_that_is_open(stuck):
    said = stuck.ok("prune", "--branches", "--yes", "--json")
    assert said.json == {"removed": False, "worktrees": [], "branches": [], "kept_branches": []}
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


def test_a_pager_gets_the_terminal_and_ctrl_c(stuck, on_screen):
    """The pager ends itself, crew only waits."""
    stuck.configure(
        "[diff]\ncommand = \"trap 'echo heard; exit 3' INT; test -t 1 && echo ready; "
        'while :; do sleep 0.05; done"\n'
    )
    screen = on_screen([CREW, "diff", "1"], cwd=stuck.root)
    screen.until("ready")
    screen.type("\x03")
    assert screen.ended() == 3
    assert "heard" in screen.shown
