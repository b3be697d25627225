"""The main road in a real tmux, with keys alone: new, start, attach, complete, merge."""

import shlex

import pytest

from front.conftest import CREW
from front.tui.terminal_desk import desk  # noqa: F401 - a fixture
from front.tui.tmux_seat import TmuxSeat, needs_tmux

pytestmark = needs_tmux
CLEAN = (False, True, False)


@pytest.fixture
def seat(scene):
    found = TmuxSeat(scene.root, columns=120, lines=36)
    yield found
    found.end()


def test_ctrl_z_gives_the_shell_back_and_fg_returns(scene, seat):
    scene.ok("new", "--title", "Paint the door")
    seat.run(shlex.quote(str(CREW)))
    seat.sees("Paint the door")
    assert seat.modes == (True, False, True)
    seat.keys("C-z")
    seat.sees("ready>")
    assert seat.modes == CLEAN
    seat.run("fg")
    seat.sees("Paint the door")
    seat.until(lambda _shown: seat.modes == (True, False, True))
    seat.keys("q")
    seat.sees("ready>")
    assert seat.modes == CLEAN
    seat.run("echo code $?")
    seat.sees("code 0")


WORK = "do echo red > door && git add door && git commit -q -m 'Paint the door'"


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
def test_from_a_new_task_to_its_merge_with_keys_alone(desk, size):  # noqa: F811
    """new, start, attach, work, detach, complete, merge; nothing is typed at a shell."""
    seat = TmuxSeat(desk.root, columns=size[0], lines=size[1])
    try:
        seat.run(shlex.quote(str(CREW)))
        seat.sees("no tasks here")
        seat.keys("n")
        seat.sees("New task")
        seat.type("Paint the door")
        seat.sees("Paint the door")
        seat.keys("C-s")
        seat.until(lambda shown: "New task" not in shown and "Paint the door" in shown)
        seat.keys("s")
        seat.sees("does what is typed")
        seat.keys("Enter")
        seat.sees("terminal)")
        seat.keys("a")
        seat.sees("agent of task 1 is here")
        seat.run(WORK)
        log = ("-C", str(desk.worktree()), "log", "-1", "--format=%s")
        seat.until(lambda _shown: desk.git(*log) == "Paint the door")
        seat.keys("C-g")
        seat.sees("space menu")
        seat.keys(":")
        seat.sees("tab complete")
        seat.type("complete 1")
        seat.sees("complete 1")
        seat.keys("Enter")
        seat.sees("press a key to go back")
        seat.keys("Space")
        seat.until(lambda shown: "awaits merge" in shown)
        seat.keys("m")
        seat.sees("erge")
        seat.keys("y")
        seat.until(lambda _shown: desk.git("log", "--merges", "--format=%s", "main"))
        assert desk.git("show", "main:door") == "red"
        seat.until(lambda _shown: desk.status("1") == "merged")
        seat.keys("q")
        seat.sees("ready>")
        assert seat.modes == CLEAN
    finally:
        seat.end()
