"""On a small disk that is full: sentences instead of tracebacks, and the crew continues after."""

import subprocess

import pytest

from agents.conftest import need
from crew.system.processes.process import working_bwrap
from front.conftest import CREW, until

KEPT_FULL = """
dd if=/dev/zero of="$SMALL/ballast" bs=4k 2>/dev/null
"$CREW" run --drain & runner=$!
while [ ! -e "$GO" ]; do sleep 0.05; done
rm "$SMALL/ballast"
wait $runner
"""

ALL_FULL = """
cp -a . "$SMALL/repo" && cd "$SMALL/repo" || exit 9
dd if=/dev/zero of="$SMALL/ballast" bs=4k 2>/dev/null
for words in ps list "show 1" "new --title=two" spawn "run --drain" "config set run.agents 2"
do "$CREW" $words; echo "exit of $words: $?"
done
rm "$SMALL/ballast"
"$CREW" run --drain || exit 8
"$CREW" doctor || exit 7
git log --format=%s main
"""

FILLED = """
"$CREW" run --drain & runner=$!
until "$CREW" ps 2>&1 | grep "starts no new work"; do
  kill -0 $runner || { echo "the runner ended"; wait $runner; exit $?; }
  sleep 0.1
done
"$CREW" ps --json
rm "$SMALL"/*/1/ballast
wait $runner; echo "exit of the runner: $?"
"$CREW" ps --json
"$CREW" doctor || exit 7
git log --format=%s main
"""

FILLS = """
[ -e "$SCENE/filled" ] || {{
  touch "$SCENE/filled"
  dd if=/dev/zero of=ballast bs=4k 2>/dev/null
  {then}
}}
echo 1 > file && git add file && git commit -qm "task 1" && echo DONE
"""


@pytest.fixture
def small_disk(scene):
    """Starts a script beside a file system of a few megabytes, `$SMALL`."""
    need(bwrap := working_bwrap(), "bwrap")
    small = scene.folder / "small"
    small.mkdir()
    said = scene.folder / "said.txt"

    def start(script, size):
        argv = [bwrap, "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--size", str(size)]
        argv += ["--tmpfs", small, "--chdir", scene.root]
        for name, value in (("SMALL", small), ("CREW", CREW), ("GO", scene.folder / "room")):
            argv += ["--setenv", name, str(value)]
        with said.open("w") as out:
            running = subprocess.Popen([*argv, "sh", "-c", script], stdout=out, stderr=out)
        scene.started.append(running)
        return running

    yield start
    assert "Traceback" not in said.read_text()
    assert "fault in crew" not in said.read_text()


def test_a_runner_waits_for_room_and_continues_by_itself(scene, small_disk):
    scene.configure(f'[worktree]\ndir = "{scene.folder}/small"\n')
    scene.ok("new", "--title", "one")
    running = small_disk(KEPT_FULL, 2**20)
    until(lambda: "starts no new work" in scene.crew("ps").err)
    said = scene.folder / "said.txt"
    until(lambda: "starts no new work and tries again by itself: " in said.read_text())
    assert scene.status("1") != "merged"
    (scene.folder / "room").touch()
    assert running.wait(timeout=120) == 0
    assert scene.status("1") == "merged"
    assert scene.git("log", "--format=%s", "main").splitlines().count("task 1") == 1
    assert "starts no new work" not in scene.crew("ps").err


def test_a_repository_on_a_full_disk_can_be_read_and_is_whole_after(scene, small_disk):
    scene.ok("new", "--title", "one")
    scene.ok("spawn")
    code = small_disk(ALL_FULL, 12 * 2**20).wait(timeout=240)
    said = (scene.folder / "said.txt").read_text()
    assert code == 0, said
    for words in ("ps", "list", "show 1"):
        assert f"exit of {words}: 0" in said, said
    assert "exit of new --title=two: 0" not in said, said
    assert said.splitlines().count("task 1") == 1, said


@pytest.mark.parametrize("then", ["exit 1", "echo DONE; exit 0", "sleep 5; echo much; exit 1"])
@pytest.mark.parametrize("place", ["all", "worktrees"])
def test_a_disk_that_fills_in_the_middle_of_a_step_pauses_the_runner(
    scene, small_disk, place, then
):
    """Neither the agent nor the task has failed, and nothing of the step is lost."""
    (scene.folder / "agent.sh").write_text(FILLS.format(then=then))
    moved = 'cp -a . "$SMALL/repo" && cd "$SMALL/repo" || exit 9\n'
    if place == "worktrees":
        moved = ""
        scene.configure(f'[worktree]\ndir = "{scene.folder}/small/trees"\n')
    scene.ok("new", "--title", "one")
    code = small_disk(moved + FILLED, 12 * 2**20).wait(timeout=240)
    said = (scene.folder / "said.txt").read_text()
    assert code == 0, said
    assert "exit of the runner: 0" in said, said
    assert said.splitlines().count("task 1") == 1, said
    assert said.count('"error_count": 0') == 2, said
