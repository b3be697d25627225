"""After a kill in the middle of an agent's `git commit`, whichever command comes next works."""

import pytest

from front.conftest import PATIENCE_S, until

KILLED = {
    "before": 'touch "$git_dir/index.lock"',
    "head": 'touch "$git_dir/HEAD.lock" "$heads/crew-$CREW_TASK_ID.lock"',
    "all": 'touch "$git_dir/index.lock" "$git_dir/HEAD.lock" "$heads/crew-$CREW_TASK_ID.lock"',
    "after": 'git commit -q -a -m half; mv "$git_dir/index" "$git_dir/index.lock"\n'
    'cp "$SCENE/index-$CREW_TASK_ID" "$git_dir/index"',
    "empty": 'git commit -q -a -m half; touch "$git_dir/index.lock"\n'
    'cp "$SCENE/index-$CREW_TASK_ID" "$git_dir/index"',
}
"""What is left, by when git was killed: before its branch had moved, or after."""

AGENT = """\
git_dir=$(git rev-parse --absolute-git-dir); heads="$CREW_GIT_DIR/refs/heads"
if [ ! -e "$SCENE/up-$CREW_TASK_ID" ]; then
  echo half > readme
  cp "$git_dir/index" "$SCENE/index-$CREW_TASK_ID"
  . "$SCENE/killed-$CREW_TASK_ID"
  touch "$SCENE/up-$CREW_TASK_ID"
  while :; do sleep 0.05; done
fi
echo "$CREW_TASK_ID" > "file-$CREW_TASK_ID"
git add "file-$CREW_TASK_ID" && git commit -q -m "task $CREW_TASK_ID" || exit 1
git diff --quiet HEAD || git commit -q -a -m rest
echo DONE
"""


@pytest.fixture
def killed(scene, running):
    """One task for each way to be killed, all of them in the middle of it when crew dies."""
    (scene.folder / "agent.sh").write_text(AGENT)
    tasks = {str(number): kind for number, kind in enumerate(KILLED, 1)}
    for task, kind in tasks.items():
        (scene.folder / f"killed-{task}").write_text(KILLED[kind])
        scene.ok("new", "--title", kind)
    runner = running("--agents", str(len(tasks)))
    until(lambda: all((scene.folder / f"up-{task}").exists() for task in tasks))
    runner.kill()
    runner.communicate(timeout=PATIENCE_S)
    return scene, tasks


def check(scene, tasks):
    for task in tasks:
        assert scene.git("show", f"main:file-{task}") == task
    assert scene.git("show", "main:readme") == "half"
    (first, *_) = (run for run in scene.ok("runs", "1", "--json").json)
    assert (first["state"], first["round"]) == ("complete", 1)


def test_the_next_runner_clears_the_locks_of_the_dead(killed):
    scene, tasks = killed
    said = scene.crew("run", "--drain")
    assert said.code == 0, said.err
    check(scene, tasks)


def test_resume_clears_the_locks_of_the_dead(killed):
    scene, tasks = killed
    for task in tasks:
        scene.ok("resume", task)
    check(scene, tasks)


def test_kill_clears_the_locks_of_the_dead(killed):
    """Everything is kept as a checkpoint, and the task begins again from there."""
    scene, tasks = killed
    for agent in scene.agents():
        scene.ok("kill", agent["name"])
    for task in tasks:
        scene.ok("resume", task)
    for task in tasks:
        assert scene.git("show", f"main:file-{task}") == task
