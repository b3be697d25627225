"""An agent that fills the disk or the log harms no other: large files, and a flood of output."""

import time

from crew.git.checkpoints.checkpoints import checkpoints, take_checkpoint
from crew.workplace import find_workplace
from front.conftest import until

FLOOD = """\
if [ "$CREW_TASK_ID" = 1 ]; then
  while [ ! -e "$SCENE/go" ]; do
    yes "a line of output that says nothing at all" | head -c 10000000
  done
fi
"""


def test_other_agents_make_their_steps_while_one_floods_its_log(scene, running):
    agent = scene.folder / "agent.sh"
    agent.write_text(FLOOD + agent.read_text())
    for title in ("flood", "two", "three", "four"):
        scene.ok("new", "--title", title)
    scene.configure("[log]\nmax_mb = 50\n")
    ended = running("--drain", "--agents", "4")
    log = scene.root / ".crew/logs/task-1.log"
    until(lambda: all(scene.status(task) == "merged" for task in "234"))
    until(lambda: b"max_mb = 50 limits this log" in log.read_bytes()[: 8 * 2**20])
    assert scene.status("1") == "in_progress"
    scene.let_go()
    assert ended.wait(timeout=120) == 0
    assert scene.status("1") == "merged"


LARGE = """\
if [ ! -e large.bin ]; then
  head -c 2000000 /dev/zero > large.bin; echo "not yet"; exit 0
fi
rm large.bin
"""


def test_a_large_file_is_left_out_of_a_steps_checkpoint_and_named_in_the_log(scene):
    agent = scene.folder / "agent.sh"
    agent.write_text(LARGE + agent.read_text())
    scene.configure("[worktree]\ncheckpoint_max_mb = 1\n")
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain")
    log = (scene.root / ".crew/logs/task-1.log").read_text()
    assert "=== left out of the checkpoint: large.bin (2.0 MB) ===" in log
    assert scene.status("1") == "merged"


def test_prune_deletes_old_checkpoints_of_merged_tasks_only(scene):
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain")
    scene.ok("new", "--title", "two")
    repo = find_workplace(scene.root).repo
    for task in "12":
        for age_days in (40, 1):
            (scene.root / "draft").write_text(f"{task} {age_days}")
            at = time.time() - age_days * 86_400
            take_checkpoint(repo, scene.root, task, label="draft", at=at)
    (scene.root / "draft").unlink()
    before = {task: len(checkpoints(repo, task)) for task in "12"}
    assert "deletes 1 old checkpoints of merged tasks" in scene.ok("prune", "--dry-run").err
    scene.ok("prune", "--yes")
    assert {task: len(checkpoints(repo, task)) for task in "12"} == {
        "1": before["1"] - 1,
        "2": before["2"],
    }
    assert "nothing was removed" in scene.ok("prune", "--yes").err
