"""Around a task's work: what it changed, when it is over, and what it leaves behind."""

import json
import shutil
import signal
import subprocess

import pytest

from crew.front.cli.tasks.poll import PollTarget
from crew.workplace import find_workplace
from front.conftest import CREW, PATIENCE_S, until, worktree


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
    scene.refused(5, "not_started", "diff", "1")
    scene.ok("close", "1")
    scene.refused(3, "not_found", "diff", "1")
    assert scene.crew("diff", "7").code == 3


def test_a_diff_template_that_makes_no_sense_is_refused(stuck):
    stuck.configure('[diff]\ncommand = "git diff {{.Nonsense}}"\n')
    assert "Nonsense" in stuck.refused(2, "invalid_value", "diff", "1").message


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
    assert "todo" in scene.refused(124, "timed_out", "poll", "1", "--timeout", "0s").message


def test_nobody_waits_for_a_change_that_cannot_come(scene):
    scene.ok("new", "--title", "one")
    scene.ok("close", "1")
    scene.refused(5, "no_more_changes", "poll", "1")
    refused = scene.refused(5, "no_more_changes", "poll", "1", "--status", "merged")
    assert "--status closed" in refused.hint


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


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_diff_that_was_killed_leaves_nothing_in_the_way_of_the_next(closed, when):
    closed.ok("prune", "--yes")
    died = closed.crew("diff", "1", CREW_CRASH_AT=f"runner.run_diff.{when}")
    assert died.code == -signal.SIGKILL
    assert "+hello" in closed.ok("diff", "1").out


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
